/* Facts about writing files and reports: the old file or the new one, never half of either. */
#include "close.h"

#include "io/file.h"
#include "io/own_file.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fixture {
    n2ce_ctx *ctx;
    char folder[64];
} fixture;

static int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    return n2ce_ctx_new(&f.ctx, NULL) == N2CE_OK ? 0 : -1;
}

static bool is_dots(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

/* Removes a folder of files and of folders of files. */
static void remove_folder(const char *path, int depth) {
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char child[PATH_MAX];
        if (is_dots(entry->d_name)) continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (unlink(child) != 0 && depth > 0) remove_folder(child, depth - 1);
    }
    closedir(dir);
    rmdir(path);
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_ctx_free(f->ctx);
    remove_folder(f->folder, 1);
    return 0;
}

static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));) n += !is_dots(entry->d_name);
    closedir(dir);
    return n;
}

static void path_in(const fixture *f, const char *name, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/%s", f->folder, name);
}

static void assert_content(const char *path, const char *expected, size_t n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(n + 1);
    assert_non_null(bytes);
    const size_t found = fread(bytes, 1, n + 1, file);
    fclose(file);
    const bool same = found == n && memcmp(bytes, expected, n) == 0;
    free(bytes);
    assert_true(same);
}

/* ---- files ------------------------------------------------------------------------------ */

/* A file has the bytes that were given, none left out, and nothing else lies beside it. */
static void a_written_file_is_complete_and_alone(void **state) {
    fixture *f = *state;
    char path[PATH_MAX];
    path_in(f, "a.json", path);
    assert_int_equal(n2_file_write(f->ctx, path, "a\0b\n", 4), N2CE_OK);
    assert_content(path, "a\0b\n", 4);
    assert_int_equal(entries(f->folder), 1);
    assert_int_equal(n2_file_write(f->ctx, path, "", 0), N2CE_OK);
    assert_content(path, "", 0);
    assert_int_equal(entries(f->folder), 1);
}

/* Large files are written whole. */
static void a_large_file_is_written_whole(void **state) {
    enum { N = 5000000 };
    fixture *f = *state;
    char path[PATH_MAX], *bytes = malloc(N);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++) bytes[i] = (char)(i * 31 % 251);
    path_in(f, "large", path);
    assert_int_equal(n2_file_write(f->ctx, path, bytes, N), N2CE_OK);
    assert_content(path, bytes, N);
    free(bytes);
}

/* Writing replaces: a reader who has the old file open keeps the old file. */
static void a_reader_of_the_old_file_is_not_disturbed(void **state) {
    fixture *f = *state;
    char path[PATH_MAX], bytes[8] = "";
    path_in(f, "a", path);
    assert_int_equal(n2_file_write(f->ctx, path, "old", 3), N2CE_OK);
    FILE *reader = fopen(path, "rb");
    assert_non_null(reader);
    assert_int_equal(n2_file_write(f->ctx, path, "newer", 5), N2CE_OK);
    assert_int_equal(fread(bytes, 1, sizeof bytes, reader), 3);
    fclose(reader);
    assert_memory_equal(bytes, "old", 3);
    assert_content(path, "newer", 5);
}

/* A full disk, played by a limit on file sizes: the old file stays, no half file is left. */
static void a_write_that_fails_leaves_the_old_file(void **state) {
    fixture *f = *state;
    char path[PATH_MAX];
    static char bytes[100000];
    path_in(f, "a", path);
    assert_int_equal(n2_file_write(f->ctx, path, "old", 3), N2CE_OK);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const n2ce_status status = n2_file_write(f->ctx, path, bytes, sizeof bytes);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, N2CE_EIO);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), path));
    assert_content(path, "old", 3);
    assert_int_equal(entries(f->folder), 1);
}

/* Where no file can be, N2CE_EIO names the path: below a file, in a missing folder, in /proc. */
static void impossible_places_are_errors(void **state) {
    fixture *f = *state;
    char file[PATH_MAX], below[PATH_MAX + 16], missing[PATH_MAX];
    path_in(f, "file", file);
    path_in(f, "missing/a", missing);
    snprintf(below, sizeof below, "%s/a", file);
    assert_int_equal(n2_file_write(f->ctx, file, "x", 1), N2CE_OK);
    const char *const places[] = {below, missing, "/proc/n2ce/a", "/proc/a", ""};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        assert_int_equal(n2_file_write(f->ctx, places[i], "x", 1), N2CE_EIO);
        assert_non_null(strstr(n2ce_errmsg(f->ctx), places[i]));
    }
    assert_int_equal(entries(f->folder), 1);
}

/* A folder is not replaced by a file, and no temporary file is left beside it. */
static void a_folder_is_not_replaced_by_a_file(void **state) {
    fixture *f = *state;
    char path[PATH_MAX];
    path_in(f, "folder", path);
    assert_int_equal(n2_folder_make(f->ctx, path), N2CE_OK);
    assert_int_equal(n2_file_write(f->ctx, path, "x", 1), N2CE_EIO);
    assert_int_equal(entries(f->folder), 1);
    assert_int_equal(n2_folder_make(f->ctx, path), N2CE_OK);
}

/* Who may not replace does not, even if the file came after it was looked for. */
static void what_came_meanwhile_stays(void **state) {
    const fixture *f = *state;
    char path[PATH_MAX];
    n2_new_file file;
    path_in(f, "file", path);
    assert_int_equal(n2_file_check_output(f->ctx, path, false), N2CE_OK);
    assert_int_equal(n2_new_file_begin(f->ctx, path, &file), N2CE_OK);
    file.keep = true;
    n2_new_file_add(&file, "late", 4);
    assert_int_equal(n2_file_create(f->ctx, path, "early", 5), N2CE_OK);
    assert_int_equal(n2_new_file_end(&file, N2CE_OK), N2CE_EEXIST);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "--force"));
    assert_int_equal(n2_file_create(f->ctx, path, "later", 5), N2CE_EEXIST);
    assert_content(path, "early", 5);
    assert_int_equal(entries(f->folder), 1);
}

/* What was private stays private, and who wrote through a link still has one. */
static void modes_and_links_are_kept(void **state) {
    const fixture *f = *state;
    char path[PATH_MAX], link[PATH_MAX];
    struct stat info;
    path_in(f, "file", path);
    path_in(f, "link", link);
    assert_int_equal(n2_file_write(f->ctx, path, "old", 3), N2CE_OK);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(n2_file_write(f->ctx, link, "new", 3), N2CE_OK);
    assert_content(path, "new", 3);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

static void what_is_no_file_is_not_replaced(void **state) {
    const fixture *f = *state;
    char pipe[PATH_MAX], nowhere[PATH_MAX];
    path_in(f, "pipe", pipe);
    path_in(f, "nowhere", nowhere);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink("not there/at all", nowhere), 0);
    const char *const paths[] = {pipe, nowhere, "/dev/null", f->folder};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct stat before, after;
        assert_int_equal(lstat(paths[i], &before), 0);
        assert_int_equal(n2_file_check_output(f->ctx, paths[i], true), N2CE_EIO);
        assert_int_equal(n2_file_write(f->ctx, paths[i], "x", 1), N2CE_EIO);
        assert_int_equal(lstat(paths[i], &after), 0);
        assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    }
}

/* Before the work, not after it. */
static void what_cannot_be_written_is_told_at_once(void **state) {
    const fixture *f = *state;
    char path[PATH_MAX], name[301];
    memset(name, 'n', 300);
    name[300] = '\0';
    path_in(f, name, path);
    assert_int_equal(n2_file_check_output(f->ctx, path, false), N2CE_EIO);
    path_in(f, "fine", path);
    assert_int_equal(n2_file_check_output(f->ctx, path, false), N2CE_OK);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* A name too long for the system is an error, not an overflow. */
static void a_name_too_long_is_an_error(void **state) {
    fixture *f = *state;
    static char path[3 * PATH_MAX];
    memset(path, 'a', sizeof path - 1);
    memcpy(path, f->folder, strlen(f->folder));
    path[strlen(f->folder)] = '/';
    assert_int_equal(n2_file_write(f->ctx, path, "x", 1), N2CE_EIO);
    char buffer[PATH_MAX];
    assert_int_equal(n2_path_join(f->ctx, buffer, sizeof buffer, path, "b"), N2CE_EINVAL);
    assert_int_equal(entries(f->folder), 0);
}

static FILE *made(const fixture *f, const char *name, char path[PATH_MAX]) {
    path_in(f, name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

/* What a program that crashed left of the same file goes; what somebody still writes stays, and so
 * does what only looks alike. */
static void leftovers_of_a_crash_are_removed(void **state) {
    fixture *f = *state;
    char path[PATH_MAX], crashed[PATH_MAX], at_work[PATH_MAX], other[PATH_MAX], alike[PATH_MAX];
    path_in(f, "a", path);
    fclose(made(f, "a.4711-0", crashed));
    FILE *writer = made(f, "a.4711-1", at_work);
    assert_int_equal(flock(fileno(writer), LOCK_EX), 0);
    fclose(made(f, "b.4711-0", other));
    fclose(made(f, "a.4711-csv", alike));
    assert_int_equal(n2_file_write(f->ctx, path, "x", 1), N2CE_OK);
    assert_content(path, "x", 1);
    assert_int_not_equal(access(crashed, F_OK), 0);
    assert_int_equal(access(at_work, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(access(alike, F_OK), 0);
    fclose(writer);
    assert_int_equal(n2_file_write(f->ctx, path, "y", 1), N2CE_OK);
    assert_int_not_equal(access(at_work, F_OK), 0);
}

/* A process that is killed while it writes leaves nothing, where the system has files without a
 * name; this one does. */
static void a_writer_that_dies_leaves_nothing(void **state) {
    const fixture *f = *state;
    char path[PATH_MAX];
    int status;
    path_in(f, "file", path);
    const pid_t child = fork();
    if (child == 0) {
        n2_new_file file;
        (void)n2_new_file_begin(f->ctx, path, &file);
        n2_new_file_add(&file, "half", 4);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(entries(f->folder), 0);
}

/* Two files that come together: if the second has no place, the first is as it was. */
static void files_come_together_or_not_at_all(void **state) {
    const fixture *f = *state;
    char first[PATH_MAX], second[PATH_MAX];
    path_in(f, "first", first);
    path_in(f, "second", second);
    for (int replace = 0; replace < 2; replace++) {
        n2_new_file both[2];
        if (replace) assert_int_equal(n2_file_write(f->ctx, first, "old", 3), N2CE_OK);
        assert_int_equal(n2_new_file_begin(f->ctx, first, &both[0]), N2CE_OK);
        assert_int_equal(n2_new_file_begin(f->ctx, second, &both[1]), N2CE_OK);
        both[0].keep = both[1].keep = !replace;
        n2_new_file_add(&both[0], "new", 3);
        n2_new_file_add(&both[1], "new", 3);
        assert_int_equal(n2_folder_make(f->ctx, second), N2CE_OK); /* somebody's, meanwhile */
        assert_int_not_equal(n2_new_files_end(both, 2, N2CE_OK), N2CE_OK);
        if (replace) assert_content(first, "old", 3);
        assert_int_equal(entries(f->folder), replace ? 2 : 1);
        assert_int_equal(rmdir(second), 0);
    }
}

/* ---- what is written again and again -------------------------------------------------------- */

static void only_ones_own_file_is_replaced(void **state) {
    const fixture *f = *state;
    char path[PATH_MAX];
    path_in(f, "state", path);
    assert_int_equal(n2_own_file_write(f->ctx, path, "one", 3), N2CE_OK);
    assert_int_equal(n2_own_file_write(f->ctx, path, "two", 3), N2CE_OK);
    assert_content(path, "two", 3);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(n2_file_write(f->ctx, path, "somebody's", 10), N2CE_OK);
    assert_int_equal(n2_own_file_write(f->ctx, path, "three", 5), N2CE_EEXIST);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "somebody else"));
    n2_own_file_remove(f->ctx, path);
    assert_content(path, "somebody's", 10);
    assert_int_equal(n2_own_file_claim(f->ctx, path), N2CE_OK);
    assert_int_equal(n2_own_file_write(f->ctx, path, "three", 5), N2CE_OK);
    n2_own_file_remove(f->ctx, path);
    assert_int_equal(entries(f->folder), 0);
}

static void names_of_one_file_are_known(void **state) {
    const fixture *f = *state;
    char a[PATH_MAX], b[PATH_MAX], other[PATH_MAX], link[PATH_MAX];
    path_in(f, "a", a);
    path_in(f, "./a", b);
    path_in(f, "other", other);
    path_in(f, "link", link);
    assert_true(n2_file_is_same(a, b)); /* not there */
    assert_false(n2_file_is_same(a, other));
    assert_int_equal(n2_file_write(f->ctx, a, "x", 1), N2CE_OK);
    assert_int_equal(symlink(a, link), 0);
    assert_true(n2_file_is_same(a, b));
    assert_true(n2_file_is_same(a, link));
    assert_false(n2_file_is_same(a, other));
    assert_int_equal(n2_file_check_output(f->ctx, "-", true), N2CE_EINVAL);
}

/* ---- folders ------------------------------------------------------------------------------ */

/* A folder is made once and found later; a file in its place, or no parent, is an error. */
static void folders_are_made_or_found(void **state) {
    fixture *f = *state;
    char path[PATH_MAX], file[PATH_MAX], orphan[PATH_MAX];
    path_in(f, "b", path);
    path_in(f, "file", file);
    path_in(f, "no/such", orphan);
    assert_int_equal(n2_folder_make(f->ctx, path), N2CE_OK);
    assert_int_equal(n2_folder_make(f->ctx, path), N2CE_OK);
    assert_int_equal(n2_file_write(f->ctx, file, "x", 1), N2CE_OK);
    assert_int_equal(n2_folder_make(f->ctx, file), N2CE_EIO);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "not a folder"));
    assert_int_equal(n2_folder_make(f->ctx, orphan), N2CE_EIO);
    assert_int_equal(n2_folder_make(f->ctx, ""), N2CE_EIO);
}

/* Trying whether a folder can be written to, or made, leaves no trace. */
static void checking_a_folder_leaves_no_trace(void **state) {
    fixture *f = *state;
    char missing[PATH_MAX], orphan[PATH_MAX];
    path_in(f, "missing", missing);
    path_in(f, "no/such", orphan);
    assert_int_equal(n2_folder_check_writable(f->ctx, f->folder), N2CE_OK);
    assert_int_equal(n2_folder_check_writable(f->ctx, missing), N2CE_OK);
    assert_int_equal(n2_folder_check_writable(f->ctx, orphan), N2CE_EIO);
    assert_int_equal(n2_folder_check_writable(f->ctx, "/proc"), N2CE_EIO);
    assert_int_equal(entries(f->folder), 0);
}

/* A path is joined if it fits, to the last byte. */
static void paths_are_joined_if_they_fit(void **state) {
    fixture *f = *state;
    char buffer[8];
    assert_int_equal(n2_path_join(f->ctx, buffer, 8, "abc", "def"), N2CE_OK);
    assert_string_equal(buffer, "abc/def");
    assert_int_equal(n2_path_join(f->ctx, buffer, 8, "abcd", "def"), N2CE_EINVAL);
}

/* A file, a folder or a dangling link is there; nothing is absent. */
static void absence_is_absence_of_anything(void **state) {
    fixture *f = *state;
    char path[PATH_MAX];
    path_in(f, "a", path);
    assert_int_equal(n2_file_check_absent(f->ctx, path), N2CE_OK);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    assert_int_equal(n2_file_check_absent(f->ctx, path), N2CE_EEXIST);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), path));
    assert_int_equal(n2_file_check_absent(f->ctx, f->folder), N2CE_EEXIST);
}

/* ---- reports ------------------------------------------------------------------------------- */

static n2ce_answer *small_answer(n2ce_ctx *ctx) {
    static const char *const settings[][2] = {
        {"dim", "2"}, {"n", "4"}, {"runs", "2"}, {"steps", "3"}};
    const n2ce_task *task = n2ce_task_find("study gaussian");
    n2ce_options *options = NULL;
    n2ce_answer *answer = NULL;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &options), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        assert_int_equal(n2ce_options_set(options, settings[i][0], settings[i][1]), N2CE_OK);
    assert_int_equal(n2ce_task_run(ctx, task, options, &answer), N2CE_OK);
    n2ce_options_free(options);
    return answer;
}

/* A report is a page and its data, in a folder that is made for it. */
static void a_report_is_a_page_and_its_data(void **state) {
    fixture *f = *state;
    const n2ce_task *task = n2ce_task_find("study gaussian");
    char folder[PATH_MAX], data[PATH_MAX], page[PATH_MAX + 32];
    path_in(f, "out", folder);
    path_in(f, "out/gaussian.json", data);
    snprintf(page, sizeof page, "%s/%s", folder, n2ce_report_page(task));
    n2ce_answer *answer = small_answer(f->ctx);
    assert_int_equal(n2ce_report_write(f->ctx, answer, folder, false), N2CE_OK);
    assert_int_equal(entries(folder), 2);
    const char *json = n2ce_answer_json(answer);
    assert_content(data, json, strlen(json));
    assert_int_equal(access(page, R_OK), 0);
    n2ce_answer_free(answer);
}

/* The disk is full where the page is half written, and the data would fit: neither is there. */
static void half_a_report_is_none(void **state) {
    fixture *f = *state;
    char folder[PATH_MAX];
    path_in(f, "out", folder);
    n2ce_answer *answer = small_answer(f->ctx);
    const size_t data = strlen(n2ce_answer_json(answer)), page = strlen(n2ce_answer_page(answer));
    assert_true(page > data + 100);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = data + 50;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const n2ce_status status = n2ce_report_write(f->ctx, answer, folder, false);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, N2CE_EIO);
    assert_int_equal(entries(folder), 0);
    assert_int_equal(n2ce_report_write(f->ctx, answer, folder, false), N2CE_OK);
    n2ce_answer_free(answer);
}

/* Checking, twice or before writing, leaves things as they were. */
static void checking_a_report_leaves_no_trace(void **state) {
    fixture *f = *state;
    const n2ce_task *task = n2ce_task_find("study gaussian");
    char folder[PATH_MAX];
    path_in(f, "out", folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n2ce_report_check(f->ctx, task, folder, false), N2CE_OK);
        assert_int_equal(entries(f->folder), 0);
    }
    assert_int_equal(n2_folder_make(f->ctx, folder), N2CE_OK);
    assert_int_equal(n2ce_report_check(f->ctx, task, folder, false), N2CE_OK);
    assert_int_equal(entries(f->folder), 1); /* a folder that was there stays */
    assert_int_equal(entries(folder), 0);
}

/* A report, or half of one, is overwritten only on request. */
static void a_report_is_not_overwritten_without_force(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"gaussian.html", "gaussian.json"};
    const n2ce_task *task = n2ce_task_find("study gaussian");
    n2ce_answer *answer = small_answer(f->ctx);
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_MAX];
        path_in(f, names[i], path);
        assert_int_equal(n2_file_write(f->ctx, path, "mine", 4), N2CE_OK);
        assert_int_equal(n2ce_report_check(f->ctx, task, f->folder, false), N2CE_EEXIST);
        assert_non_null(strstr(n2ce_errmsg(f->ctx), names[i]));
        assert_int_equal(n2ce_report_write(f->ctx, answer, f->folder, false), N2CE_EEXIST);
        assert_content(path, "mine", 4);
        assert_int_equal(entries(f->folder), 1);
        assert_int_equal(n2ce_report_check(f->ctx, task, f->folder, true), N2CE_OK);
        assert_content(path, "mine", 4);
        assert_int_equal(n2ce_report_write(f->ctx, answer, f->folder, true), N2CE_OK);
        assert_int_equal(entries(f->folder), 2);
        for (size_t k = 0; k < 2; k++) {
            path_in(f, names[k], path);
            assert_int_equal(unlink(path), 0);
        }
    }
    n2ce_answer_free(answer);
}

/* A place where no folder can be is an error before any work and when writing. */
static void impossible_report_folders_are_errors(void **state) {
    fixture *f = *state;
    const n2ce_task *task = n2ce_task_find("study gaussian");
    char file[PATH_MAX], below[PATH_MAX + 8];
    path_in(f, "file", file);
    snprintf(below, sizeof below, "%s/out", file);
    assert_int_equal(n2_file_write(f->ctx, file, "x", 1), N2CE_OK);
    n2ce_answer *answer = small_answer(f->ctx);
    const char *const places[] = {file, below, "/proc/n2ce", "/proc", "", "/no/such/parent"};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        assert_int_equal(n2ce_report_check(f->ctx, task, places[i], true), N2CE_EIO);
        assert_int_equal(n2ce_report_write(f->ctx, answer, places[i], true), N2CE_EIO);
    }
    assert_int_equal(entries(f->folder), 1);
    n2ce_answer_free(answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_written_file_is_complete_and_alone),
        TEST(a_large_file_is_written_whole),
        TEST(a_reader_of_the_old_file_is_not_disturbed),
        TEST(a_write_that_fails_leaves_the_old_file),
        TEST(impossible_places_are_errors),
        TEST(a_folder_is_not_replaced_by_a_file),
        TEST(what_came_meanwhile_stays),
        TEST(modes_and_links_are_kept),
        TEST(what_is_no_file_is_not_replaced),
        TEST(what_cannot_be_written_is_told_at_once),
        TEST(a_name_too_long_is_an_error),
        TEST(leftovers_of_a_crash_are_removed),
        TEST(a_writer_that_dies_leaves_nothing),
        TEST(files_come_together_or_not_at_all),
        TEST(only_ones_own_file_is_replaced),
        TEST(names_of_one_file_are_known),
        TEST(folders_are_made_or_found),
        TEST(checking_a_folder_leaves_no_trace),
        TEST(paths_are_joined_if_they_fit),
        TEST(absence_is_absence_of_anything),
        TEST(a_report_is_a_page_and_its_data),
        TEST(half_a_report_is_none),
        TEST(checking_a_report_leaves_no_trace),
        TEST(a_report_is_not_overwritten_without_force),
        TEST(impossible_report_folders_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
