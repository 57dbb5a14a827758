/* D'Kitty: a torso on four legs of 14 numbers each: where a leg begins and how it is turned,
 * centres and ranges of its three joints, in radians, and the lengths of thigh and shin. It is to
 * walk to a place 2 m ahead, along y, upright and looking there.
 *
 * Parts are ROBEL's boxes and capsules that collide, with their masses; what has a mesh there is a
 * box. As in the benchmark the range that the model allows the thigh is the hip's, while actions
 * are scaled by the thigh's own. At the start the joints are at their centres. */
#include "dkitty_policy.h"
#include "mujoco.h"
#include "robot.h"

#include <math.h>

enum { LEG = 14, TURN = 3, JOINTS = 6, SIZES = 12 };

#ifdef N2CE_MUJOCO

static const double TARGET = 2, UPRIGHT = 0.9, NEAR = 0.5;

static void write_bracket(n2_text *xml, bool turned) {
    const char *turn = turned ? " euler='0 0 1.57'" : "";
    for (int side = -1; side <= 1; side += 2)
        n2_text_add(xml, "<geom type='box'%s pos='%s' size='.0015 .013 .029' mass='.005'/>", turn,
                    turned ? (side < 0 ? "0 -.02 .026" : "0 .02 .026")
                           : (side < 0 ? "-.02 0 .026" : ".02 0 .026"));
    n2_text_add(xml, "<geom type='box'%s pos='0 0 .051' size='.019 .016 .004' mass='.008'/>", turn);
}

/* A bracket, a clamp and a motor. */
static void write_part(n2_text *xml, bool turned) {
    write_bracket(xml, turned);
    n2_text_add(xml, "<geom type='box' pos='0 0 .061' size='.019 .013 .006' mass='.005'/>"
                     "<geom type='box' pos='0 0 .084' size='.018 .015 .024' mass='.095'/>");
}

static void write_leg(const double *leg, size_t k, n2_text *xml) {
    const double *j = leg + JOINTS;
    n2_text_add(xml,
                "<body pos='%.9g %.9g %.9g' euler='%.9g %.9g %.9g'>"
                "<joint name='hip%zu' axis='0 1 0' range='%.9g %.9g'/>",
                leg[0], leg[1], leg[2], leg[TURN], leg[TURN + 1], leg[TURN + 2], k, j[0] - j[1],
                j[0] + j[1]);
    write_part(xml, true);
    n2_text_add(xml, "<body pos='0 0 %.9g'><joint name='thigh%zu' axis='1 0 0' range='%.9g %.9g'/>",
                leg[SIZES], k, j[2] - j[1], j[2] + j[1]);
    write_part(xml, false);
    n2_text_add(xml, "<body pos='0 0 %.9g'><joint name='ankle%zu' axis='1 0 0' range='%.9g %.9g'/>",
                leg[SIZES + 1], k, j[4] - j[5], j[4] + j[5]);
    write_bracket(xml, false);
    n2_text_add(xml, "<geom type='box' pos='0 0 .058' size='.025 .014 .003' mass='.002'/>"
                     "<geom type='capsule' pos='0 0 .082' size='.0103 .0187' mass='.02'/>"
                     "</body></body></body>");
}

static void write_actuators(const double *design, n2_text *xml) {
    static const char *const joints[] = {"hip", "thigh", "ankle"};
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++) {
        const double *j = design + i / 3 * LEG + JOINTS;
        const double centre = j[2 * (i % 3)], range = i % 3 == 1 ? j[1] : j[2 * (i % 3) + 1];
        n2_text_add(xml,
                    "<position joint='%s%zu' kp='5' ctrllimited='true' ctrlrange='%.9g %.9g'/>",
                    joints[i % 3], i / 3, centre - range, centre + range);
    }
}

static void write_dkitty(const double *design, n2_text *xml) {
    const n2_c_locale scope = n2_c_locale_enter();
    n2_text_add(xml, "<mujoco><compiler angle='radian' inertiafromgeom='true'/>"
                     "<option timestep='.0025'/><default>"
                     "<joint limited='true' damping='1' armature='.001'/>"
                     "<geom contype='1' conaffinity='0' condim='4' margin='.001' solref='.02 1' "
                     "solimp='.8 .9 .01'/></default><worldbody>"
                     "<geom type='plane' size='40 40 1' contype='0' conaffinity='1'/>"
                     "<body pos='0 0 .3'><freejoint/>"
                     "<geom type='box' size='.05 .1 .02' mass='.386'/>");
    for (int corner = 0; corner < 4; corner++)
        n2_text_add(xml, "<geom type='box' pos='%s %s 0' size='.024 .018 .015' mass='.086'/>",
                    corner % 2 ? ".078" : "-.078", corner / 2 ? ".122" : "-.122");
    for (size_t k = 0; k < 4; k++) write_leg(design + k * LEG, k, xml);
    n2_text_add(xml, "</body></worldbody><actuator>");
    write_actuators(design, xml);
    n2_text_add(xml, "</actuator></mujoco>");
    n2_c_locale_leave(scope);
}

static void start(const double *design, double *angle) {
    for (size_t i = 0; i < N2_ROBOT_ACTIONS; i++)
        angle[i] = design[i / 3 * LEG + JOINTS + 2 * (i % 3)];
}

static double control(const double *design, size_t joint, double action) {
    const double *j = design + joint / 3 * LEG + JOINTS + 2 * (joint % 3);
    return j[0] + j[1] * action;
}

/* Upright, near, looking there; once it has fallen, the end. */
static double reward(const mjModel *m, const mjData *d, const double *action, double forward,
                     bool *over) {
    const double *turn = d->xmat + 9, dx = -d->qpos[0], dy = TARGET - d->qpos[1];
    const double far = sqrt(dx * dx + dy * dy), up = turn[8];
    const double heading = (turn[1] * dx + turn[4] * dy) / fmax(far, 1e-9);
    const bool near_it = far<NEAR, looks = heading> UPRIGHT;
    (void)m;
    (void)action;
    (void)forward;
    *over = up < UPRIGHT;
    return (up - UPRIGHT) / (1 - UPRIGHT) + (*over ? -500 : 0) - 4 * far +
           2 * (heading - UPRIGHT) / (1 - UPRIGHT) + 5 * near_it + 5 * looks +
           10 * (near_it && looks);
}

#define DKITTY_IN_MUJOCO \
    .write = write_dkitty, .start = start, .control = control, .reward = reward,
#else
#define DKITTY_IN_MUJOCO
#endif

#define PI 3.14159265358979323846
#define USUAL_LEG(x, y, turn, hip) \
    x, y, 0, 0, turn, 0, hip, .3895, PI / 4, PI / 4, -1, 1, .0965, .0945

const n2_robot n2_dkitty_robot = {
    .name = "dkitty",
    .columns = 4 * LEG,
    .legs_columns = LEG,
    .low = {-.09, -.122, 0, -PI, -PI, -PI, -PI, PI / 35, -PI, PI / 35, -PI, PI / 35, .0965, .0945},
    .high = {.09, .122, 0, PI, PI, PI, PI, PI / 4, PI, PI / 4, PI, PI / 2, .1365, .1345},
    .usual = {USUAL_LEG(.09, .122, -3.14, -.1105), USUAL_LEG(-.09, .122, 3.14, .1105),
              USUAL_LEG(-.09, -.122, 3.14, .1105), USUAL_LEG(.09, -.122, -3.14, -.1105)},
    .noise = 0.1,
    .frames = 40,
    .clock = 1,
    .policy = n2_dkitty_policy,
    DKITTY_IN_MUJOCO};
