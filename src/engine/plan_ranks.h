/* Plans that several ranks run together: which chunks of a row program a rank has, and how their
 * sums meet. */
#ifndef N2_PLAN_RANKS_H
#define N2_PLAN_RANKS_H

#include "plan_data.h"

/* When the instructions are there: which steps are worth sharing. A matter of the problem alone. */
void n2_plan_share(n2_plan *plan);

/* Before a run: who runs it. */
n2ce_status n2_plan_gather_ranks(n2_plan *plan);

/* Chunks [begin, end) of a row program, which this rank does. */
typedef struct n2_branch {
    int begin, end;
} n2_branch;
n2_branch n2_branch_at(const n2_plan *plan, const n2_step *s);

/* After them: elements [begin, end) of an instruction's sum (NULL: it has none) for the others; */
void n2_lend_sum(const n2_plan *plan, const n2_instruction *i, const void *sum, size_t begin,
                 size_t end);
/* the exchange, true if there was one (else see ranks_status); */
bool n2_plan_exchange(n2_plan *plan, const n2_step *s);
/* and the sums of all. */
void n2_take_sum(const n2_plan *plan, const n2_instruction *i, size_t begin, size_t end);

/* On a device: notes the sums of a step's chunks, all of which this rank has made. */
void n2_plan_note_sums(n2_plan *plan, const void *step);

/* Of the time of its runs so far (n2_plan_time), the share in steps that ranks share. */
double n2_plan_shared_time(const n2_plan *plan);

#endif
