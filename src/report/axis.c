#include "axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINEAR_LIMIT 1e300  /* differences of linear coordinates stay finite */
#define TINY         1e-290 /* and their quotients, too */

n2_axis n2_axis_new(bool log) { return (n2_axis){.log = log, .min = HUGE_VAL, .max = -HUGE_VAL}; }

bool n2_axis_shows(const n2_axis *axis, double value) {
    return isfinite(value) && (!axis->log || value > 0);
}

static double coordinate(const n2_axis *axis, double value) {
    return axis->log ? log10(value) : fmax(-LINEAR_LIMIT, fmin(LINEAR_LIMIT, value));
}

void n2_axis_include(n2_axis *axis, double value) {
    if (!n2_axis_shows(axis, value)) return;
    const double u = coordinate(axis, value);
    axis->min = fmin(axis->min, u);
    axis->max = fmax(axis->max, u);
}

/* Gives a range that is too narrow to draw a width that suits its magnitude. */
static bool widen(n2_axis *axis) {
    const double size = fmax(fabs(axis->min), fabs(axis->max));
    const double enough = axis->log ? 1e-6 : fmax(1e-9 * size, TINY);
    if (axis->max - axis->min >= enough) return false;
    const double middle = axis->min / 2 + axis->max / 2;
    const double half = axis->log ? 0.5 : size < TINY ? 1 : 0.1 * size;
    axis->min = middle - half;
    axis->max = middle + half;
    return true;
}

void n2_axis_settle(n2_axis *axis, double margin) {
    if (axis->min > axis->max) {
        axis->min = 0;
        axis->max = 1;
    } else if (!widen(axis)) {
        const double extra = margin * (axis->max - axis->min);
        axis->min -= extra;
        axis->max += extra;
    }
}

void n2_axis_clip(n2_axis *axis, double end, double other_end) {
    const double low = end > other_end ? other_end : end;
    const double high = end > other_end ? end : other_end;
    if (n2_axis_shows(axis, low)) axis->min = coordinate(axis, low);
    if (n2_axis_shows(axis, high)) axis->max = coordinate(axis, high);
    if (axis->min > axis->max) { /* one end given, and the data lie beyond it */
        if (n2_axis_shows(axis, low))
            axis->max = axis->min;
        else
            axis->min = axis->max;
    }
    widen(axis);
}

void n2_axis_resize(n2_axis *axis, double width) {
    const double middle = axis->min / 2 + axis->max / 2;
    axis->min = middle - width / 2;
    axis->max = middle + width / 2;
}

static double place(const n2_axis *axis, double u) {
    return (u - axis->min) / (axis->max - axis->min);
}

double n2_axis_at(const n2_axis *axis, double value) {
    return place(axis, coordinate(axis, value));
}

/* NULL when the place is off the axis or there are enough ticks. */
static n2_tick *add_tick(n2_axis *axis, double u, bool major) {
    const double at = place(axis, u);
    if (at < -1e-9 || at > 1 + 1e-9 || axis->n_ticks == N2_TICKS_MAX) return NULL;
    n2_tick *tick = &axis->ticks[axis->n_ticks++];
    *tick = (n2_tick){.at = fmax(0, fmin(1, at)), .major = major};
    return tick;
}

/* Writes digits * 10^exponent exactly, whatever the locale, and what follows. */
static void write_label(n2_tick *tick, long long digits, int exponent, const char *tail) {
    const char *sign = digits < 0 ? "\u2212" : "";
    char plain[24]; /* the digits, zeros in front so that one is left of the point */
    const int decimals = exponent < 0 ? -exponent : 0;
    const int n = snprintf(plain, sizeof plain, "%0*lld", decimals < 20 ? decimals + 1 : 20,
                           digits < 0 ? -digits : digits);
    if (digits == 0)
        snprintf(tick->label, sizeof tick->label, "0%s", tail);
    else if (decimals > 0 && decimals < n)
        snprintf(tick->label, sizeof tick->label, "%s%.*s.%s%s", sign, n - decimals, plain,
                 plain + n - decimals, tail);
    else
        snprintf(tick->label, sizeof tick->label, "%s%s%.*s%s", sign, plain, exponent, "000000",
                 tail);
}

/* The label digits * 10^(exponent + power), in plain digits if they are few. */
static void write_log_label(n2_tick *tick, long long digits, int exponent, int power) {
    if (power >= -3 && power <= 4) {
        write_label(tick, digits, exponent + power, "");
        return;
    }
    if (digits == 1 && exponent == 0)
        write_label(tick, 10, 0, "");
    else
        write_label(tick, digits, exponent, "\u00d710");
    tick->raised = true;
    tick->power = power;
}

typedef struct step {
    int digit, exponent; /* digit * 10^exponent, the digit 1, 2 or 5 */
    double size;
} step;

static step nice_step(double width, int target) {
    const double raw = width / target;
    int exponent = (int)floor(log10(raw));
    const double f = raw / pow(10, exponent);
    int digit = f < 1.5 ? 1 : f < 3.2 ? 2 : 5;
    if (f > 7.1) {
        digit = 1;
        exponent++;
    }
    return (step){digit, exponent, digit * pow(10, exponent)};
}

static void linear_ticks(n2_axis *axis, int target) {
    const step s = nice_step(axis->max - axis->min, target);
    const long long first = (long long)ceil(axis->min / s.size - 1e-9);
    const long long last = (long long)floor(axis->max / s.size + 1e-9);
    const double largest = s.size * (double)(last > -first ? last : -first);
    if (largest > 0 && (largest >= 0.999e6 || largest < 0.999e-3))
        axis->power = (int)floor(log10(largest) + 1e-9);
    for (long long k = first; k <= last; k++) {
        n2_tick *tick = add_tick(axis, (double)k * s.size, true);
        if (tick) write_label(tick, k * s.digit, s.exponent - axis->power, "");
    }
}

/* A log axis within one decade is close to linear: 1-2-5 steps of the value. */
static void value_ticks(n2_axis *axis, int target) {
    const double base = floor(axis->min); /* values count in units of 10^base */
    const double low = pow(10, axis->min - base), high = pow(10, axis->max - base);
    const step s = nice_step(high - low, target);
    const long long last = (long long)floor(high / s.size + 1e-9);
    for (long long k = (long long)ceil(low / s.size - 1e-9); k <= last && k > 0; k++) {
        n2_tick *tick = add_tick(axis, base + log10((double)k * s.size), true);
        if (tick) write_log_label(tick, k * s.digit, s.exponent, (int)base);
    }
}

/* Ticks at 1 ... 9 in each decade, labels at 1, 2 and 5: one or two decades. */
static void digit_ticks(n2_axis *axis) {
    for (int power = (int)floor(axis->min); power <= (int)floor(axis->max); power++)
        for (int digit = 1; digit <= 9; digit++) {
            const bool major = digit == 1 || digit == 2 || digit == 5;
            n2_tick *tick = add_tick(axis, power + log10(digit), major);
            if (tick && major) write_log_label(tick, digit, 0, power);
        }
}

static void decade_label(n2_tick *tick, int power) {
    if (power >= -2 && power <= 2) {
        write_label(tick, 1, power, "");
    } else {
        write_label(tick, 10, 0, "");
        tick->raised = true;
        tick->power = power;
    }
}

/* Labels at every stride-th power of ten; 2 ... 9 between them when few. */
static void decade_ticks(n2_axis *axis, int target) {
    static const int strides[] = {1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300};
    const double width = axis->max - axis->min;
    size_t s = 0;
    while (s + 1 < sizeof strides / sizeof *strides && width / strides[s] > target + 1) s++;
    const int stride = strides[s];
    for (int power = (int)floor(axis->min); power <= (int)floor(axis->max); power++) {
        const bool major = power % stride == 0;
        if (!major && width > 40) continue;
        n2_tick *tick = add_tick(axis, power, major);
        if (tick && major) decade_label(tick, power);
        if (width >= 4) continue;
        for (int digit = 2; digit <= 9; digit++) add_tick(axis, power + log10(digit), false);
    }
}

void n2_axis_set_ticks(n2_axis *axis, int target) {
    const double width = axis->max - axis->min;
    axis->n_ticks = 0;
    axis->power = 0;
    if (target < 1) target = 1;
    if (!axis->log)
        linear_ticks(axis, target);
    else if (width < 0.7 || (width < 2 && target < 4))
        value_ticks(axis, target);
    else if (width < 2)
        digit_ticks(axis);
    else
        decade_ticks(axis, target);
}

/* --------------------------------------------------------------------------
 * Widths: guesses on the generous side, for the reader's fonts are not known
 * ----------------------------------------------------------------------- */

static double glyph_width(const char *s) {
    const unsigned char c = (unsigned char)*s;
    if (c >= 0xe3) return 1.0; /* CJK, emoji */
    if (c >= 0x80) return 0.7;
    if (strchr(" .,:;|!'ijl", c)) return 0.34;
    if (strchr("tfr()[]-/", c)) return 0.42;
    if (strchr("mwMW%@&", c)) return 0.98;
    if ((c >= 'A' && c <= 'Z') || strchr("+=<>", c)) return 0.76;
    return 0.63;
}

static const char *next_glyph(const char *s) {
    s++;
    while (((unsigned char)*s & 0xc0) == 0x80) s++;
    return s;
}

double n2_label_width(const char *s, double size) {
    double width = 0;
    for (; *s; s = next_glyph(s)) width += glyph_width(s);
    return width * size;
}

size_t n2_label_fit(const char *s, double size, double room) {
    const char *end = s;
    for (double width = 0; *end; end = next_glyph(end)) {
        width += size * glyph_width(end);
        if (width > room) break;
    }
    return (size_t)(end - s);
}

double n2_tick_width(const n2_tick *tick, double size) {
    double width = n2_label_width(tick->label, size);
    if (!tick->raised) return width;
    for (int p = tick->power; p; p /= 10) width += 0.5 * size;
    return tick->power < 0 ? width + 0.5 * size : width;
}

static bool labels_collide(const n2_axis *axis, double length, double size) {
    double end = -HUGE_VAL;
    for (size_t i = 0; i < axis->n_ticks; i++) {
        const n2_tick *tick = &axis->ticks[i];
        if (!tick->major) continue;
        const double half = n2_tick_width(tick, size) / 2, middle = tick->at * length;
        if (middle - half < end + size) return true;
        end = middle + half;
    }
    return false;
}

void n2_axis_fit_ticks(n2_axis *axis, double length, double size) {
    for (int target = 8; target >= 2; target--) {
        n2_axis_set_ticks(axis, target);
        if (!labels_collide(axis, length, size)) return;
    }
}
