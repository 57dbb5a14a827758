/* The policy of dkitty, made by make_robots (docs/bbo.md). */
#ifndef N2_DKITTY_POLICY_H
#define N2_DKITTY_POLICY_H

static const double n2_dkitty_policy[12 * 39] = {0};

#endif
