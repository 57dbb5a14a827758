/* What happens to numbers that are not finite: updates that would spread them are held back, and
 * the step is repeated to find where they came from. */
#ifndef N2_WATCH_H
#define N2_WATCH_H

#include "plan_data.h"

/* The first watched number built before node `end` that is not finite; 0: all are. */
uint32_t n2_bad_watched(const n2_plan *p, uint32_t end);

/* How many watched numbers are computed before node `end`. */
uint32_t n2_guards(const n2_plan *p, uint32_t end);

/* Whether an update would destroy the last good state, and the evidence: then it is not made. A
 * device sees to that itself. */
bool n2_is_held_back(const n2_plan *p, const n2_instruction *i);

/* Whether somebody reads a node, or a view of it, after a run on a device. */
bool n2_is_kept(const n2_plan *p, uint32_t id);

/* Repeats a run whose watched number was not finite, without updates, and fails with N2CE_ENAN,
 * naming the first node that is not. */
n2ce_status n2_explain_bad(n2_plan *p, uint32_t watched);

#endif
