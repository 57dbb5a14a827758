#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what others chose ----------------------------------------------------- */

/* Bytes of the control character that text begins with: one, or the two of a C1 code in UTF-8; 0:
 * it is none. Lines and columns are no harm. */
static size_t control_at(const char *text) {
    const unsigned char a = (unsigned char)text[0], b = (unsigned char)text[1 - !a];
    if (a == 0xc2 && b >= 0x80 && b < 0xa0) return 2;
    return (a < 0x20 && a != '\n' && a != '\t') || a == 0x7f;
}

void put_harmless(const char *text, FILE *file) {
    while (*text) {
        const size_t n = control_at(text);
        fputc(n ? '?' : *text, file);
        text += n ? n : 1;
    }
}

/* ---- files ----------------------------------------------------------------- */

static void on_shrunk(int signal_number) {
    static const char text[] =
        "n2ce: a file became shorter while it was read. Run again when nobody writes it.\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(EXIT_FAILED);
    _exit(EXIT_FAILED);
}

/* A file that is opened while a standard stream is closed would get the stream's number, and with
 * it what is said to the user. So a closed one leads to where neither reads nor writes succeed. */
static void hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void survive_files(void) {
    hold_streams();
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* a line at a time: ranks share it */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGBUS, on_shrunk);
}

/* ---- progress ------------------------------------------------------------ */

/* The bar is the terminal's, of which there is one. */
static struct { double started, drawn; /* seconds; drawn 0: no bar on screen */ } bar;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool stderr_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

static void format_seconds(double s, char *buffer, size_t size) {
    if (s < 100)
        snprintf(buffer, size, "%.0f s", s);
    else if (s < 6000)
        snprintf(buffer, size, "%.0f min", s / 60);
    else if (s < 48 * 3600.0)
        snprintf(buffer, size, "%.0f h", s / 3600);
    else
        snprintf(buffer, size, "%.0f days", s / 86400);
}

void show_progress(void *title, double done, double total) {
    enum { WIDTH = 30 };
    const double time = now();
    if (bar.started == 0) bar.started = time;
    if (time - bar.started < 0.3 || time - bar.drawn < 0.1) return; /* short work needs no bar */
    bar.drawn = time;
    const double share = total > 0 ? done / total : 0;
    const int full = (int)(share * WIDTH);
    char left[32] = "";
    if (share > 0) format_seconds((time - bar.started) * (1 - share) / share, left, sizeof left);
    char cells[WIDTH + 1];
    memset(cells, '.', WIDTH);
    memset(cells, '#', (size_t)(full < 0 ? 0 : full > WIDTH ? WIDTH : full));
    cells[WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3.0f %%, %s left \x1b[K", (const char *)title, cells, 100 * share,
            left);
    fflush(stderr);
}

void clear_progress(void) {
    if (bar.drawn != 0) fputs("\r\x1b[K", stderr);
    bar.drawn = bar.started = 0;
}

/* ---- Ctrl-C -------------------------------------------------------------- */

static n2ce_ctx *volatile interruptible;

static volatile sig_atomic_t was_asked;
static struct timespec asked; /* when */

/* The first signal asks the task to stop; one that comes later ends the program at once. A
 * terminal, timeout(1) and mpirun may send the same one to the process and to its group: what
 * follows within a second is no second wish. */
static void on_interrupt(int signal_number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (interruptible) n2ce_ctx_cancel(interruptible);
    if (!was_asked) asked = now;
    was_asked = 1;
    const double since =
        (double)(now.tv_sec - asked.tv_sec) + 1e-9 * (double)(now.tv_nsec - asked.tv_nsec);
    if (since < 1) return;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void cancel_on_interrupt(n2ce_ctx *ctx) {
    interruptible = ctx;
    was_asked = 0;
    struct sigaction action = {.sa_handler = ctx ? on_interrupt : SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
