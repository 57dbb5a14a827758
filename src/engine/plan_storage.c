/* How values lie in memory: as numbers of the backend, or in 16 bits. */
#include "plan_data.h"

void n2_plan_storage(n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) p->nodes[id].dtype = n2_node_at(p, id)->dtype;
}
