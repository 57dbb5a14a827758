/* detect: the page of the report. */
#include "detect_session.h"

n2ce_status n2_detect_page(const n2_detect_session *s, n2ce_answer *answer) {
    (void)s;
    (void)answer;
    return N2CE_OK;
}
