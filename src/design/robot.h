/* Robots whose shape is a design, walked by a fixed policy in a simulation by MuJoCo: the paper's
 * Ant and D'Kitty, in kind.
 *
 * Morphologies, bounds, rewards and episodes are those of Design-Bench; the policies, which could
 * not be found, are our own: 12 actions, each the hyperbolic tangent of a linear function of what
 * the robot senses and of two clocks, trained by CMA-ES on designs around the usual one
 * (tools/make_robots.c). D'Kitty's parts are boxes and capsules of the real masses, without meshes,
 * and parts collide with the floor alone.
 *
 * MuJoCo is opened when it is first wanted; nothing links to it. */
#ifndef N2_ROBOT_H
#define N2_ROBOT_H

#include "base/text.h"
#include "design_task.h"

enum { N2_ROBOT_COLUMNS_MAX = 60, N2_ROBOT_ACTIONS = 12, N2_ROBOT_SENSES = 39 };
enum { N2_ROBOT_WEIGHTS = N2_ROBOT_ACTIONS * N2_ROBOT_SENSES };

struct mjModel_; /* MuJoCo's */
struct mjData_;

typedef struct n2_robot {
    const char *name;
    size_t columns;      /* of a design */
    size_t legs_columns; /* of a leg; four legs follow one another */
    double low[N2_ROBOT_COLUMNS_MAX / 4], high[N2_ROBOT_COLUMNS_MAX / 4]; /* of a leg */
    double usual[N2_ROBOT_COLUMNS_MAX]; /* the design that people built */
    double noise;         /* of first designs, in halves of the ranges: recipe of the data */
    size_t frames;        /* steps of the simulation for an action */
    double clock;         /* Hz, of the slower one that the policy has */
    const double *policy; /* N2_ROBOT_WEIGHTS, action by action */

    /* The model as MuJoCo's XML; designs are within the bounds. */
    void (*write)(const double *design, n2_text *xml);
    /* The angles of the 12 joints at the start, and the control of an action in [-1, 1]. */
    void (*start)(const double *design, double *angle);
    double (*control)(const double *design, size_t joint, double action);
    /* What a step is worth; *over: the episode ends. */
    double (*reward)(const struct mjModel_ *m, const struct mjData_ *d, const double *action,
                     double forward, bool *over);
} n2_robot;

extern const n2_robot n2_ant_robot, n2_dkitty_robot;

/* N2CE_EIO, with a sentence about what is missing, where there is no MuJoCo. */
n2ce_status n2_robot_ready(n2ce_ctx *ctx);

/* What an episode of 100 actions is worth for each of the designs, which are moved into the bounds;
 * `policy` has N2_ROBOT_WEIGHTS numbers a design if own_policy, else one set for all. A model that
 * cannot be made, or a simulation that goes bad, ends the episode. The same for any number of
 * threads. N2CE_ENOMEM, N2CE_EIO, N2CE_ECANCELED. */
n2ce_status n2_robot_walk(n2ce_ctx *ctx, const n2_robot *robot, const double *designs, size_t rows,
                          const double *policy, bool own_policy, double *value);

/* Fills a space with the robot's bounds. */
void n2_robot_space(const n2_robot *robot, n2_factor *factor);

#endif
