/* Inside the communicator: the processes, and what a context knows of them. */
#ifndef N2_WORLD_H
#define N2_WORLD_H

#include "comm.h"
#include "transport.h"

struct n2ce_world {
    n2_transport transport;
    void *plugin;  /* of dlopen; NULL: none */
    bool orderly;  /* all ranks have left it and nothing is on its way */
    bool speaks;   /* it is this rank that says why the job ended */
    bool is_echo;  /* this rank failed because another one had */
    n2ce_ctx *ctx; /* of its memory */
};

typedef struct n2_comm {
    n2ce_world *world;
    int alone; /* how deep */
    int few;   /* ranks that there are; 0: all */
    n2_comm_traffic sent;
    char *scratch;
    size_t room;
} n2_comm;

#endif
