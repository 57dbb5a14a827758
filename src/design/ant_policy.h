/* The policy of ant, made by make_robots (docs/bbo.md). */
#ifndef N2_ANT_POLICY_H
#define N2_ANT_POLICY_H

static const double n2_ant_policy[12 * 39] = {0};

#endif
