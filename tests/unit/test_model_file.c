/* Facts about models: a file gives back what was saved, to the bit, or is refused. */
#include "failing_alloc.h"
#include "samples.h"

#include "io/safetensors.h"
#include "ratio/model_file.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    n2ce_ctx *ctx;
    char folder[64], path[96]; /* path: of the model */
} fixture;

static int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/model", f.folder);
    return n2ce_ctx_new(&f.ctx, NULL) == N2CE_OK ? 0 : -1;
}

static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static int tear_down(void **state) {
    fixture *f = *state;
    char command[96];
    n2ce_ctx_free(f->ctx);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    return system(command);
}

static char *read_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 22);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* ---- models ---- */

/* Runs a task on files or, if there are matrices, on them; options are names and values. */
static n2ce_model *run(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data,
                       const char *const *options) {
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_options *o;
    n2ce_answer *answer;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (; options[0]; options += 2)
        assert_int_equal(n2ce_options_set(o, options[0], options[1]), N2CE_OK);
    const n2ce_status status = data ? n2ce_task_run_on(ctx, task, o, data, 2, &answer)
                                    : n2ce_task_run(ctx, task, o, &answer);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
    n2ce_model *model = n2ce_answer_take_model(answer);
    assert_non_null(model);
    assert_null(n2ce_answer_take_model(answer)); /* once only */
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    return model;
}

#define QUICK \
    "steps", "40", "width", "8", "blocks", "1", "batch", "32", "noise", "2", "folds", "2", "M", "10"

/* A quadratic model of two columns: a small file. */
static n2ce_model *small_model(n2ce_ctx *ctx) {
    double *num = normals(200, 1, 1, 1), *den = normals(200, 0, 1, 2);
    const n2ce_matrix data[] = {matrix(num, 100, 2), matrix(den, 100, 2)};
    static const char *const options[] = {"critic", "quadratic", NULL};
    n2ce_model *m = run(ctx, "fit", data, options);
    free(num);
    free(den);
    return m;
}

typedef struct kind {
    const char *verb;
    const char *options[28];
} kind;

/* One of every part a model can have. */
static const kind kinds[] = {
    {"fit", {"critic", "quadratic", NULL}},
    {"fit", {"critic", "net", QUICK, NULL}},
    {"fit", {"critic", "net", "stages", "3", "scaling", "normal", QUICK, NULL}},
    {"fit", {"critic", "both", QUICK, NULL}},
    {"fit", {"method", "ulsif", NULL}},
    {"fit", {"method", "kliep", NULL}},
    {"mi", {"critic", "quadratic", NULL}},
    {"mi", {"critic", "net", "stages", "2", QUICK, NULL}},
    {"mi", {"method", "ulsif", NULL}},
};

/* Samples that no Gaussian fits, so that networks stay. */
static n2ce_model *model_of_kind(n2ce_ctx *ctx, const kind *k, const double *num, const double *den,
                                 size_t n) {
    const n2ce_matrix data[] = {matrix(num, n, 2), matrix(den, n, 2)};
    return run(ctx, k->verb, data, k->options);
}

/* ---- what is saved comes back ---- */

static void assert_same_scores(n2ce_model *a, n2ce_model *b) {
    enum { ROWS = 300 };
    const size_t cols = n2ce_model_columns(a);
    double *x = normals(ROWS * cols, 0, 2, 3), f[ROWS], g[ROWS];
    const n2ce_matrix rows = matrix(x, ROWS, cols);
    assert_int_equal(n2ce_model_score(a, &rows, f), N2CE_OK);
    assert_int_equal(n2ce_model_score(b, &rows, g), N2CE_OK);
    assert_memory_equal(f, g, sizeof f);
    assert_true(variance_of(f, ROWS) > 1e-6);
    free(x);
}

static void assert_same_description(const n2ce_model *a, const n2ce_model *b) {
    assert_int_equal(n2ce_model_columns(a), n2ce_model_columns(b));
    for (size_t c = 0; c < n2ce_model_columns(a); c++)
        assert_string_equal(n2ce_model_column(a, c), n2ce_model_column(b, c));
    assert_null(n2ce_model_column(b, n2ce_model_columns(b)));
    assert_string_equal(n2ce_model_json(a), n2ce_model_json(b));
}

/* Every kind of model: same scores to the bit, same description, and the same bytes when it is
 * saved once more. */
static void every_kind_comes_back(void **state) {
    enum { N = 250 };
    fixture *f = *state;
    double *num = normals(2 * N, 0, 1, 4), *den = normals(2 * N, 0, 1.5, 5);
    char again[112];
    snprintf(again, sizeof again, "%s-again", f->path);
    for (size_t i = 0; i < N; i++) num[2 * i] += i % 2 ? 3 : -3;
    for (size_t i = 0; i < 2 * N; i++) den[i] += num[i]; /* as x and y, they have much in common */
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        n2ce_model *made = model_of_kind(f->ctx, &kinds[k], num, den, N), *loaded;
        assert_int_equal(n2ce_model_save(made, f->path, true), N2CE_OK);
        assert_int_equal(n2ce_model_load(f->ctx, f->path, &loaded), N2CE_OK);
        assert_same_scores(made, loaded);
        assert_same_description(made, loaded);
        assert_int_equal(n2ce_model_save(loaded, again, true), N2CE_OK);
        size_t n, m;
        char *a = read_file(f->path, &n), *b = read_file(again, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
        n2ce_model_free(made);
        n2ce_model_free(loaded);
    }
    free(num);
    free(den);
}

/* Two columns whose product is positive nineteen times in twenty: a step that trees find. */
static n2ce_model *model_with_trees(n2ce_ctx *ctx) {
    enum { N = 1000 };
    static const char *const options[] = {"folds", "2", NULL};
    double *num = normals(2 * N, 0, 1, 6), *den = normals(2 * N, 0, 1, 7);
    for (size_t i = 0; i < N; i++)
        if ((num[2 * i] * num[2 * i + 1] > 0) != (i % 20 > 0)) num[2 * i] = -num[2 * i];
    const n2ce_matrix data[] = {matrix(num, N, 2), matrix(den, N, 2)};
    n2ce_model *m = run(ctx, "fit", data, options);
    assert_true(m->ratio->forests > 0);
    free(num);
    free(den);
    return m;
}

static void trees_come_back(void **state) {
    fixture *f = *state;
    n2ce_model *made = model_with_trees(f->ctx), *loaded;
    assert_int_equal(n2ce_model_save(made, f->path, true), N2CE_OK);
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &loaded), N2CE_OK);
    assert_same_scores(made, loaded);
    assert_same_description(made, loaded);
    n2ce_model_free(loaded);
    made->ratio->trees[1]->node[0].left = (uint32_t)made->ratio->trees[1]->nodes; /* nowhere */
    assert_int_equal(n2ce_model_save(made, f->path, true), N2CE_OK);
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &loaded), N2CE_EDATA);
    assert_null(loaded);
    n2ce_model_free(made);
}

/* A model outlives the answer it came from and the options it was made with; another context
 * gives the same bits with another number of threads. */
static void another_program_gives_the_same_bits(void **state) {
    fixture *f = *state;
    double *num = normals(600, 0, 1, 6), *den = normals(600, 0.5, 2, 7);
    n2ce_model *made = model_of_kind(f->ctx, &kinds[3], num, den, 300), *loaded;
    assert_int_equal(n2ce_model_save(made, f->path, false), N2CE_OK);
    n2ce_ctx *other = new_ctx(7);
    assert_int_equal(n2ce_model_load(other, f->path, &loaded), N2CE_OK);
    assert_same_scores(made, loaded);
    n2ce_model_free(loaded);
    n2ce_model_free(made);
    n2ce_ctx_free(other);
    free(num);
    free(den);
}

static const char header[] = "\"a, \"\"b\"\"\",colour,\xc3\xa9t\xc3\xa9\n";
static const char *const colours[] = {"red", "light \"blue\"", "gr\xc3\xbcn"};

/* Rows of two numbers and a colour between them; colour 1 is more frequent in the numerator. */
static void write_rows(const char *path, size_t n, int numerator) {
    double *x = normals(2 * n, numerator, 1, numerator ? 8 : 9);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(header, file);
    for (size_t i = 0; i < n; i++) {
        const char *colour = colours[numerator && i % 2 ? 1 : i % 3];
        fprintf(file, "%.9g,", x[2 * i]);
        for (fputc('"', file); *colour; colour++) {
            if (*colour == '"') fputc('"', file);
            fputc(*colour, file);
        }
        fprintf(file, "\",%.9g\n", x[2 * i + 1]);
    }
    fclose(file);
    free(x);
}

/* Names with commas, quotes and accents survive, and so do levels, in their order. */
static void names_and_levels_survive(void **state) {
    fixture *f = *state;
    char num[112], den[112];
    snprintf(num, sizeof num, "%s/num.csv", f->folder);
    snprintf(den, sizeof den, "%s/den.csv", f->folder);
    write_rows(num, 120, 1);
    write_rows(den, 120, 0);
    const char *const options[] = {"num",    num,         "den",         den,
                                   "output", f->path,     "categorical", "colour",
                                   "critic", "quadratic", NULL};
    n2ce_model *made = run(f->ctx, "fit", NULL, options), *m;
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &m), N2CE_OK);
    assert_same_description(made, m);
    assert_int_equal(n2ce_model_columns(m), 3);
    assert_string_equal(n2ce_model_column(m, 0), "a, \"b\"");
    assert_string_equal(n2ce_model_column(m, 2), "\xc3\xa9t\xc3\xa9");
    assert_int_equal(n2_levels_count(m->levels, "colour"), 3);
    for (size_t k = 0; k < 3; k++)
        assert_string_equal(n2_levels_text(m->levels, "colour", k),
                            n2_levels_text(made->levels, "colour", k));
    /* a file with other columns around, in another order, finds its columns by name */
    n2_reader *r;
    char rows[112];
    snprintf(rows, sizeof rows, "%s/rows.csv", f->folder);
    const char text[] = "x,\xc3\xa9t\xc3\xa9,colour,\"a, \"\"b\"\"\"\n9,0.5,gr\xc3\xbcn,1.5\n";
    write_file(rows, text, sizeof text - 1);
    assert_int_equal(n2_model_open_rows(m, rows, N2_HEADER_AUTO, false, "", NULL, &r), N2CE_OK);
    double x[3], direct, read;
    size_t n, code;
    assert_int_equal(n2_reader_next(r, x, 1, &n), N2CE_OK);
    assert_int_equal(n, 1);
    assert_int_equal(n2_levels_add(m->levels, "colour", "gr\xc3\xbcn", &code), N2CE_OK);
    const double expected[] = {1.5, (double)code, 0.5};
    assert_memory_equal(x, expected, sizeof x);
    assert_int_equal(n2_ratio_score(m->ratio, x, 1, &direct), N2CE_OK);
    assert_int_equal(n2_ratio_score(made->ratio, x, 1, &read), N2CE_OK);
    assert_memory_equal(&direct, &read, sizeof direct);
    n2_reader_close(r);
    n2ce_model_free(m);
    n2ce_model_free(made);
}

/* A level that was not there when the model was fitted is refused by its name. */
static void unknown_levels_are_refused(void **state) {
    fixture *f = *state;
    char num[112], rows[112];
    snprintf(num, sizeof num, "%s/num.csv", f->folder);
    snprintf(rows, sizeof rows, "%s/rows.csv", f->folder);
    write_rows(num, 60, 1);
    const char *const options[] = {"num",    num,         "den",         num,
                                   "output", f->path,     "categorical", "colour",
                                   "critic", "quadratic", NULL};
    n2ce_model *m = run(f->ctx, "fit", NULL, options);
    const char text[] = "\"a, \"\"b\"\"\",colour,\xc3\xa9t\xc3\xa9\n1,pink,2\n";
    write_file(rows, text, sizeof text - 1);
    n2_reader *r;
    double x[3];
    size_t n;
    assert_int_equal(n2_model_open_rows(m, rows, N2_HEADER_AUTO, false, NULL, NULL, &r), N2CE_OK);
    assert_int_equal(n2_reader_next(r, x, 1, &n), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "pink"));
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "line 2"));
    n2_reader_close(r);
    const double codes[] = {1, 0, 2}; /* no level is called 0, though one has this code */
    const n2ce_matrix one = matrix(codes, 1, 3);
    assert_int_equal(n2ce_model_score(m, &one, x), N2CE_EDATA);
    assert_non_null(
        strstr(n2ce_errmsg(f->ctx), "\"0\" is not a known category of column \"colour\""));
    n2ce_model_free(m);
}

/* Three rows of four have one level, the fourth the other. */
static void write_levels(const char *path, int often, int seldom) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("c,x\n", file);
    for (int i = 0; i < 120; i++) fprintf(file, "%d,%d\n", i % 4 ? often : seldom, i * 37 % 120);
    fclose(file);
}

/* Levels of a file that are numbers are those numbers in memory. */
static void numbers_are_names_of_levels(void **state) {
    fixture *f = *state;
    char num[112], den[112], rows[112];
    snprintf(num, sizeof num, "%s/num.csv", f->folder);
    snprintf(den, sizeof den, "%s/den.csv", f->folder);
    write_levels(num, 20, 10);
    write_levels(den, 10, 20);
    const char *const options[] = {"num",         num, "den",    den,         "output", f->path,
                                   "categorical", "c", "critic", "quadratic", NULL};
    n2ce_model *m = run(f->ctx, "fit", NULL, options);
    const double x[] = {10, 1, 20, 1};
    const n2ce_matrix two = matrix(x, 2, 2);
    double direct[2], read[2];
    assert_int_equal(n2ce_model_score(m, &two, direct), N2CE_OK);
    assert_true(direct[0] < -0.5 && direct[1] > 0.5);
    n2_reader *r;
    size_t n;
    snprintf(rows, sizeof rows, "%s/rows.csv", f->folder);
    write_file(rows, "x,c\n1,10\n1,20\n", 15);
    assert_int_equal(n2_model_open_rows(m, rows, N2_HEADER_AUTO, false, "", NULL, &r), N2CE_OK);
    double coded[4];
    assert_int_equal(n2_reader_next(r, coded, 2, &n), N2CE_OK);
    assert_int_equal(n2_ratio_score(m->ratio, coded, 2, read), N2CE_OK);
    assert_memory_equal(direct, read, sizeof read);
    n2_reader_close(r);
    n2ce_model_free(m);
}

/* A model of matrices whose columns got names finds them in a file, levels included. */
static void columns_can_be_named(void **state) {
    fixture *f = *state;
    enum { N = 120 };
    double num[2 * N], den[2 * N], x[2], direct, read;
    for (size_t i = 0; i < N; i++) {
        num[2 * i] = i % 4 ? 1 : 0; /* a level, */
        den[2 * i] = i % 4 ? 0 : 1;
        num[2 * i + 1] = den[2 * i + 1] = (double)(i * 37 % N); /* and a number */
    }
    const n2ce_matrix data[] = {matrix(num, N, 2), matrix(den, N, 2)};
    static const char *const options[] = {"categorical", "0", "critic", "quadratic", NULL};
    static const char *const names[] = {"1", "the \"level\", that is"}, *const twice[] = {"a", "a"};
    n2ce_model *made = run(f->ctx, "fit", data, options), *m;
    assert_int_equal(n2ce_model_name(made, twice), N2CE_EINVAL);
    assert_string_equal(n2ce_model_column(made, 1), "1");
    assert_int_equal(n2ce_model_name(made, names), N2CE_OK);
    assert_int_equal(n2ce_model_save(made, f->path, false), N2CE_OK);
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &m), N2CE_OK);
    assert_same_description(made, m);
    const double row[] = {1, 5};
    const n2ce_matrix one = matrix(row, 1, 2);
    assert_int_equal(n2ce_model_score(m, &one, &direct), N2CE_OK);
    n2_reader *r;
    size_t n;
    char rows[112];
    snprintf(rows, sizeof rows, "%s/rows.csv", f->folder);
    static const char text[] = "\"the \"\"level\"\", that is\",1\n5,1\n";
    write_file(rows, text, sizeof text - 1);
    assert_int_equal(n2_model_open_rows(m, rows, N2_HEADER_YES, false, "", NULL, &r), N2CE_OK);
    assert_int_equal(n2_reader_next(r, x, 1, &n), N2CE_OK);
    assert_int_equal(n2_ratio_score(m->ratio, x, 1, &read), N2CE_OK);
    assert_memory_equal(&direct, &read, sizeof read);
    n2_reader_close(r);
    n2ce_model_free(m);
    n2ce_model_free(made);
}

/* ---- rows to score ---- */

/* Any type and any strides are the same rows. */
static void rows_may_lie_in_memory_as_they_like(void **state) {
    fixture *f = *state;
    n2ce_model *m = small_model(f->ctx);
    const double plain[] = {1, -2, 3, 4, -5, 0};
    const float single[] = {1, -2, 3, 4, -5, 0};
    const int32_t whole[] = {1, -2, 3, 4, -5, 0};
    const int64_t columns[] = {1, 3, -5, -2, 4, 0};
    const double gaps[] = {0, -5, 99, 4, 3, 99, -2, 1, 99}; /* backwards, with gaps */
    const n2ce_matrix views[] = {
        {plain, N2CE_F64, 3, 2, 0, 0},
        {single, N2CE_F32, 3, 2, 0, 0},
        {whole, N2CE_I32, 3, 2, 0, 0},
        {columns, N2CE_I64, 3, 2, sizeof(int64_t), 3 * sizeof(int64_t)},
        {gaps + 7, N2CE_F64, 3, 2, -3 * (ptrdiff_t)sizeof(double), -(ptrdiff_t)sizeof(double)},
    };
    double first[3], other[3];
    assert_int_equal(n2ce_model_score(m, &views[0], first), N2CE_OK);
    for (size_t i = 1; i < COUNT_OF(views); i++) {
        assert_int_equal(n2ce_model_score(m, &views[i], other), N2CE_OK);
        assert_memory_equal(first, other, sizeof first);
    }
    n2ce_model_free(m);
}

static void rows_that_cannot_be_scored_are_refused(void **state) {
    fixture *f = *state;
    n2ce_model *m = small_model(f->ctx);
    double x[] = {0, 1, 2, (double)NAN, 4, 5}, out[3] = {7, 7, 7};
    n2ce_matrix rows = matrix(x, 2, 3);
    assert_int_equal(n2ce_model_score(m, &rows, out), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "3 columns"));
    rows = matrix(x, 3, 2);
    assert_int_equal(n2ce_model_score(m, &rows, out), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "row 1, column 1"));
    x[3] = (double)INFINITY;
    assert_int_equal(n2ce_model_score(m, &rows, out), N2CE_EDATA);
    rows.rows = 0;
    assert_int_equal(n2ce_model_score(m, &rows, out), N2CE_OK);
    assert_close(out[0], 7, 0, 0);
    n2ce_model_free(m);
}

/* ---- what must not be replaced, and what is not ours ---- */

static void a_model_is_replaced_only_on_request(void **state) {
    fixture *f = *state;
    n2ce_model *m = small_model(f->ctx);
    write_file(f->path, "mine", 4);
    assert_int_equal(n2ce_model_save(m, f->path, false), N2CE_EEXIST);
    size_t n;
    char *bytes = read_file(f->path, &n);
    assert_int_equal(n, 4);
    free(bytes);
    assert_int_equal(n2ce_model_save(m, f->path, true), N2CE_OK);
    assert_int_equal(n2ce_model_save(m, "/nonexistent/model", false), N2CE_EIO);
    assert_int_equal(entries(f->folder), 1);
    n2ce_model_free(m);
}

static void assert_refused(fixture *f, const char *what) {
    n2ce_model *m = (n2ce_model *)1;
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &m), N2CE_EDATA);
    assert_null(m);
    const char *message = n2ce_errmsg(f->ctx);
    if (strstr(message, f->path) != message || !strstr(message, what)) {
        print_error("\"%s\" does not begin with the path or lacks \"%s\"\n", message, what);
        fail();
    }
}

/* Files of others are refused, and the sentence says what they are. */
static void foreign_files_are_refused(void **state) {
    fixture *f = *state;
    n2ce_model *m = (n2ce_model *)1;
    assert_int_equal(n2ce_model_load(f->ctx, f->path, &m), N2CE_EIO);
    assert_null(m);
    write_file(f->path, "", 0);
    assert_refused(f, "");
    write_file(f->path, "a,b\n1,2\n3,4\n", 12);
    assert_refused(f, "not a safetensors file");
    const int64_t x = 1;
    const n2_st_tensor t = {.name = "x", .dtype = N2_ST_I64, .data = &x, .bytes = 8};
    const n2_st_pair other = {"format", "pt"}, later = {"format", "n2ce ratio 99"};
    assert_int_equal(n2_st_write(f->ctx, f->path, &t, 1, &other, 1), N2CE_OK);
    assert_refused(f, "not a model of n2ce");
    assert_int_equal(n2_st_write(f->ctx, f->path, &t, 1, NULL, 0), N2CE_OK);
    assert_refused(f, "not a model of n2ce");
    assert_int_equal(n2_st_write(f->ctx, f->path, &t, 1, &later, 1), N2CE_OK);
    assert_refused(f, "n2ce ratio 99");
}

/* ---- damage ---- */

static n2ce_status load_bytes(n2ce_ctx *ctx, const char *bytes, size_t n, n2ce_model **m) {
    n2_st_file *file;
    *m = NULL;
    n2ce_status status = n2_st_parse(ctx, "bytes", bytes, n, &file);
    if (status != N2CE_OK) return status;
    status = n2_model_of_file(ctx, "bytes", file, m);
    n2_st_close(file);
    return status;
}

/* Every single bit of a file counts: no flipped one is overlooked. */
static void every_flipped_bit_is_found(void **state) {
    fixture *f = *state;
    n2ce_model *m = small_model(f->ctx), *loaded;
    size_t n;
    assert_int_equal(n2ce_model_save(m, f->path, false), N2CE_OK);
    char *bytes = read_file(f->path, &n);
    assert_true(n > 500 && n < 5000);
    assert_int_equal(load_bytes(f->ctx, bytes, n, &loaded), N2CE_OK);
    assert_same_scores(m, loaded);
    n2ce_model_free(loaded);
    for (size_t i = 0; i < 8 * n; i++) {
        bytes[i / 8] = (char)(bytes[i / 8] ^ (1 << i % 8));
        const n2ce_status status = load_bytes(f->ctx, bytes, n, &loaded);
        if (status != N2CE_EDATA) print_error("byte %zu, bit %zu\n", i / 8, i % 8);
        assert_int_equal(status, N2CE_EDATA);
        assert_null(loaded);
        assert_int_equal(strncmp(n2ce_errmsg(f->ctx), "bytes", 5), 0);
        bytes[i / 8] = (char)(bytes[i / 8] ^ (1 << i % 8));
    }
    free(bytes);
    n2ce_model_free(m);
}

/* The same through files: every byte replaced by its opposite, every length but the whole. */
static void damaged_and_cut_files_are_refused(void **state) {
    fixture *f = *state;
    n2ce_model *m = small_model(f->ctx), *loaded;
    size_t n;
    assert_int_equal(n2ce_model_save(m, f->path, false), N2CE_OK);
    char *bytes = read_file(f->path, &n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)~bytes[i];
        write_file(f->path, bytes, n);
        assert_int_equal(n2ce_model_load(f->ctx, f->path, &loaded), N2CE_EDATA);
        assert_null(loaded);
        bytes[i] = (char)~bytes[i];
        write_file(f->path, bytes, i);
        assert_int_equal(n2ce_model_load(f->ctx, f->path, &loaded), N2CE_EDATA);
        assert_null(loaded);
    }
    FILE *file = fopen(f->path, "wb"); /* and one byte more */
    assert_non_null(file);
    fwrite(bytes, 1, n, file);
    fputc(0, file);
    fclose(file);
    assert_refused(f, "");
    free(bytes);
    n2ce_model_free(m);
}

/* ---- memory ---- */

/* Fails every allocation of loading, scoring and saving in turn. */
static void every_failed_allocation_is_an_error(void **state) {
    fixture *f = *state;
    double *num = normals(100, 0, 1, 10), *den = normals(100, 1, 1, 11);
    char again[112];
    snprintf(again, sizeof again, "%s-again", f->path);
    static const size_t tried[] = {0, 1, 5, 7};
    for (size_t k = 0; k < COUNT_OF(tried); k++) {
        n2ce_model *made = model_of_kind(f->ctx, &kinds[tried[k]], num, den, 50);
        assert_int_equal(n2ce_model_save(made, f->path, true), N2CE_OK);
        const n2ce_matrix rows =
            matrix(num, 50 * 2 / n2ce_model_columns(made), n2ce_model_columns(made));
        n2ce_model_free(made);
        n2ce_status status = N2CE_ENOMEM;
        size_t n = 1; /* 0 is the context's own */
        for (; status != N2CE_OK; n++) {
            failing_alloc memory = failing_alloc_new(n, false);
            const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
            n2ce_ctx *ctx;
            n2ce_model *m;
            double out[50];
            assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
            status = n2ce_model_load(ctx, f->path, &m);
            assert_true((status == N2CE_OK) == (m != NULL));
            if (status == N2CE_OK) status = n2ce_model_score(m, &rows, out);
            if (status == N2CE_OK) status = n2ce_model_save(m, again, true);
            if (status != (memory.calls > n ? N2CE_ENOMEM : N2CE_OK))
                print_error("model %zu, allocation %zu: %s\n", tried[k], n, n2ce_errmsg(ctx));
            assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
            n2ce_model_free(m);
            n2ce_ctx_free(ctx);
            assert_int_equal(memory.live, 0);
        }
        assert_true(n > 10);
    }
    free(num);
    free(den);
}

static void freeing_null_is_fine(void **state) {
    (void)state;
    n2ce_model_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(every_kind_comes_back),
        CASE(trees_come_back),
        CASE(another_program_gives_the_same_bits),
        CASE(names_and_levels_survive),
        CASE(unknown_levels_are_refused),
        CASE(numbers_are_names_of_levels),
        CASE(columns_can_be_named),
        CASE(rows_may_lie_in_memory_as_they_like),
        CASE(rows_that_cannot_be_scored_are_refused),
        CASE(a_model_is_replaced_only_on_request),
        CASE(foreign_files_are_refused),
        CASE(every_flipped_bit_is_found),
        CASE(damaged_and_cut_files_are_refused),
        CASE(every_failed_allocation_is_an_error),
        cmocka_unit_test(freeing_null_is_fine),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
