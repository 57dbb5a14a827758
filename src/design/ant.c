/* Ant: a sphere on four legs of 15 numbers each: where a leg begins and how it is turned, centres
 * and ranges of its three joints, in degrees, and the lengths of its three parts. It is to walk
 * along x.
 *
 * At the start the joints are at their centres. */
#include "ant_policy.h"
#include "mujoco.h"
#include "robot.h"

#include <math.h>

enum { LEG = 15, TURN = 3, JOINTS = 6, SIZES = 12 };

#ifdef N2CE_MUJOCO

static const double DEGREES = 3.14159265358979323846 / 180;

static void write_leg(const double *leg, size_t k, n2_text *xml) {
    const double *s = leg + SIZES, *j = leg + JOINTS;
    n2_text_add(xml,
                "<body pos='%.9g %.9g %.9g' euler='%.9g %.9g %.9g'>"
                "<geom type='capsule' size='.08' fromto='0 0 0 %.9g %.9g 0'/>"
                "<body pos='%.9g %.9g 0'>"
                "<joint name='hip%zu' axis='-1 1 0' range='%.9g %.9g'/>"
                "<joint name='thigh%zu' axis='0 0 1' range='%.9g %.9g'/>"
                "<geom type='capsule' size='.08' fromto='0 0 0 %.9g %.9g 0'/>"
                "<body pos='%.9g %.9g 0'><joint name='ankle%zu' axis='-1 1 0' range='%.9g %.9g'/>"
                "<geom type='capsule' size='.08' fromto='0 0 0 %.9g %.9g 0'/>"
                "</body></body></body>",
                leg[0], leg[1], leg[2], leg[TURN], leg[TURN + 1], leg[TURN + 2], s[0], s[0], s[0],
                s[0], k, j[0] - j[1], j[0] + j[1], k, j[2] - j[3], j[2] + j[3], s[1], s[1], s[1],
                s[1], k, j[4] - j[5], j[4] + j[5], s[2], s[2]);
}

static void write_ant(const double *design, n2_text *xml) {
    static const char *const joints[] = {"hip", "thigh", "ankle"};
    const n2_c_locale scope = n2_c_locale_enter();
    n2_text_add(xml, "<mujoco><compiler angle='degree' inertiafromgeom='true'/>"
                     "<option integrator='RK4' timestep='.01'/><default>"
                     "<joint armature='1' damping='1' limited='true'/>"
                     "<geom contype='1' conaffinity='0' condim='3' density='5' friction='1 .5 .5' "
                     "margin='.01'/></default><worldbody>"
                     "<geom type='plane' size='40 40 1' contype='0' conaffinity='1'/>"
                     "<body pos='0 0 1.25'><freejoint/><geom type='sphere' size='.25'/>");
    for (size_t k = 0; k < 4; k++) write_leg(design + k * LEG, k, xml);
    n2_text_add(xml, "</body></worldbody><actuator>");
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++)
        n2_text_add(xml, "<motor joint='%s%zu' gear='150' ctrllimited='true' ctrlrange='-1 1'/>",
                    joints[i % 3], i / 3);
    n2_text_add(xml, "</actuator></mujoco>");
    n2_c_locale_leave(scope);
}

static void start(const double *design, double *angle) {
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++)
        angle[i] = design[i / 3 * LEG + JOINTS + 2 * (i % 3)] * DEGREES;
}

static double control(const double *design, size_t joint, double action) {
    (void)design;
    (void)joint;
    return action;
}

/* Speed and staying alive, less effort and forces of contacts. */
static double reward(const mjModel *m, const mjData *d, const double *action, double forward,
                     bool *over) {
    double effort = 0, forces = 0;
    *over = false;
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++) effort += action[i] * action[i];
    for (size_t i = 0; i < 6 * (size_t)m->nbody; i++) {
        const double f = fmax(-1, fmin(1, d->cfrc_ext[i]));
        forces += f * f;
    }
    return forward + 1 - 0.5 * effort - 0.0005 * forces;
}

#define ANT_IN_MUJOCO .write = write_ant, .start = start, .control = control, .reward = reward,
#else
#define ANT_IN_MUJOCO
#endif

#define USUAL_LEG(turn) 0, 0, 0, 0, 0, turn, 0, 5, 0, 30, 50, 20, .2, .2, .4

const n2_robot n2_ant_robot = {
    .name = "ant",
    .columns = 4 * LEG,
    .legs_columns = LEG,
    .low = {-.1, -.1, -.1, -180, -180, -180, -180, 5, -180, 5, -180, 5, .1, .1, .2},
    .high = {.1, .1, .1, 180, 180, 180, 180, 45, 180, 45, 180, 45, .4, .4, .8},
    .usual = {USUAL_LEG(0), USUAL_LEG(90), USUAL_LEG(180), USUAL_LEG(-90)},
    .noise = 0.075,
    .frames = 5,
    .clock = 1,
    .policy = n2_ant_policy,
    ANT_IN_MUJOCO};
