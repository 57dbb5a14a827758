/* Episodes of robots. */
#include "base/numerics.h"
#include "base/pool.h"
#include "mujoco.h"
#include "robot.h"

#include <math.h>
#include <string.h>

void n2_robot_space(const n2_robot *robot, n2_factor *factor) {
    for (size_t c = 0; c < robot->columns; c++) {
        const size_t k = c % robot->legs_columns;
        factor[c] = (n2_factor){N2_CONTINUOUS, robot->low[k], robot->high[k], 0};
    }
}

#ifdef N2CE_MUJOCO

enum { STEPS = 100, FREE_POSITIONS = 7, FREE_SPEEDS = 6 };
static const double PI = 3.14159265358979323846;

n2ce_status n2_robot_ready(n2ce_ctx *ctx) { return n2_mujoco_open(ctx) ? N2CE_OK : N2CE_EIO; }

typedef struct walks {
    n2ce_ctx *ctx;
    const n2_mujoco *mj;
    const n2_robot *robot;
    const double *designs, *policy;
    bool own_policy;
    double *value;
    mjVFS **files; /* by worker */
    bool failed;
} walks;

/* Where it is, how fast, and two clocks; the joints are the last 12 of positions and speeds. */
static void sense(const n2_robot *robot, const mjData *d, double *sense) {
    const double *turn = d->xmat + 9; /* of the torso, body 1 */
    double *s = sense;
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++) *s++ = d->qpos[FREE_POSITIONS + i];
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++)
        *s++ = fmax(-1, fmin(1, 0.1 * d->qvel[FREE_SPEEDS + i]));
    *s++ = d->qpos[2];
    for (size_t i = 0; i < 3; i++) *s++ = turn[3 * i + 2]; /* where its upper side looks */
    for (size_t i = 0; i < 6; i++) *s++ = fmax(-2, fmin(2, 0.5 * d->qvel[i]));
    for (size_t k = 1; k <= 2; k++) {
        *s++ = sin(2 * PI * robot->clock * (double)k * d->time);
        *s++ = cos(2 * PI * robot->clock * (double)k * d->time);
    }
    *s = 1;
}

static void act(const double *policy, const double *sense, double *action) {
    for (size_t a = 0; a < N2_ROBOT_ACTIONS; a++) {
        double sum = 0;
        for (size_t i = 0; i < N2_ROBOT_SENSES; i++)
            sum += policy[a * N2_ROBOT_SENSES + i] * sense[i];
        action[a] = tanh(sum);
    }
}

static bool is_bad(const mjData *d) {
    return d->warning[mjWARN_BADQPOS].number || d->warning[mjWARN_BADQVEL].number ||
           d->warning[mjWARN_BADQACC].number;
}

/* One action; false: the episode is over. */
static bool walk_step(const walks *w, const mjModel *m, mjData *d, const double *design,
                      const double *policy, double *sum) {
    double senses[N2_ROBOT_SENSES], action[N2_ROBOT_ACTIONS];
    const double before = d->qpos[0];
    bool over = false;
    sense(w->robot, d, senses);
    act(policy, senses, action);
    for (size_t a = 0; a < N2_ROBOT_ACTIONS; a++)
        d->ctrl[a] = w->robot->control(design, a, action[a]);
    for (size_t f = 0; f < w->robot->frames; f++) w->mj->step(m, d);
    if (is_bad(d)) return false;
    w->mj->forces(m, d);
    const double seconds = m->opt.timestep * (double)w->robot->frames;
    *sum += w->robot->reward(m, d, action, (d->qpos[0] - before) / seconds, &over);
    return !over;
}

static double walk(const walks *w, const mjModel *m, mjData *d, const double *design,
                   const double *policy) {
    double sum = 0;
    w->mj->reset(m, d);
    w->robot->start(design, d->qpos + FREE_POSITIONS);
    w->mj->forward(m, d);
    for (size_t step = 0; step < STEPS; step++)
        if (!walk_step(w, m, d, design, policy, &sum)) break;
    return sum;
}

/* A model from its text; NULL: there is none of this shape. */
static mjModel *make_model(const walks *w, mjVFS *files, const n2_text *xml) {
    static const char name[] = "robot.xml";
    char why[256] = "";
    w->mj->default_vfs(files);
    mjModel *m = NULL;
#if mjVERSION_HEADER < 300
    const bool there = w->mj->make_file(files, name, (int)xml->length) == 0;
    if (there) memcpy(files->filedata[w->mj->find_file(files, name)], xml->data, xml->length);
#else
    const bool there = w->mj->add_buffer(files, name, xml->data, (int)xml->length) == 0;
#endif
    if (there) m = w->mj->load_xml(name, files, why, sizeof why);
    w->mj->delete_vfs(files);
    return m;
}

static void move_inside(const n2_robot *robot, const double *from, double *design) {
    for (size_t c = 0; c < robot->columns; c++) {
        const size_t k = c % robot->legs_columns;
        design[c] = fmax(robot->low[k], fmin(robot->high[k], from[c]));
    }
}

static void walk_one(void *arg, size_t i, int worker) {
    walks *w = arg;
    double design[N2_ROBOT_COLUMNS_MAX];
    n2_text xml = n2_text_new(w->ctx);
    w->value[i] = 0;
    if (n2_cancelled(w->ctx)) return;
    move_inside(w->robot, w->designs + i * w->robot->columns, design);
    w->robot->write(design, &xml);
    mjModel *m = xml.data ? make_model(w, w->files[worker], &xml) : NULL;
    mjData *d = m ? w->mj->make_data(m) : NULL;
    if (d) {
        const double *policy = w->policy + (w->own_policy ? i * N2_ROBOT_WEIGHTS : 0);
        w->value[i] = walk(w, m, d, design, policy);
        w->mj->delete_data(d);
    }
    if (m) w->mj->delete_model(m);
    n2_text_free(&xml);
}

n2ce_status n2_robot_walk(n2ce_ctx *ctx, const n2_robot *robot, const double *designs, size_t rows,
                          const double *policy, bool own_policy, double *value) {
    const size_t workers = (size_t)n2_ctx_threads(ctx);
    walks w = {.ctx = ctx,
               .robot = robot,
               .designs = designs,
               .policy = policy,
               .own_policy = own_policy,
               .value = value,
               .mj = n2_mujoco_open(ctx)};
    if (!w.mj) return N2CE_EIO;
    n2_arena arena = n2_arena_new(ctx);
    n2ce_status status = N2CE_ENOMEM;
    w.files = n2_arena_alloc(&arena, workers, sizeof *w.files);
    bool room = w.files != NULL;
    for (size_t i = 0; i < workers && room; i++)
        room = (w.files[i] = n2_arena_alloc(&arena, 1, sizeof **w.files)) != NULL;
    if (room) status = n2_parallel_for(ctx, rows, walk_one, &w);
    n2_arena_free(&arena);
    return status == N2CE_OK && n2_cancelled(ctx) ? N2CE_ECANCELED : status;
}

#else

n2ce_status n2_robot_ready(n2ce_ctx *ctx) {
    return n2_fail(ctx, N2CE_EIO,
                   "Robots need MuJoCo, and this n2ce was built without it. Install its header and "
                   "library (Debian: libmujoco-dev) and build n2ce again.");
}

n2ce_status n2_robot_walk(n2ce_ctx *ctx, const n2_robot *robot, const double *designs, size_t rows,
                          const double *policy, bool own_policy, double *value) {
    (void)robot;
    (void)designs;
    (void)rows;
    (void)policy;
    (void)own_policy;
    (void)value;
    return n2_robot_ready(ctx);
}

#endif
