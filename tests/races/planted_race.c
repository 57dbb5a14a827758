/* Two threads are about to write one value by kernels, which ThreadSanitizer does not look into: it
 * must say so all the same, and end the program with an error (src/engine/accesses.h). */
#include "engine/accesses.h"

#include <pthread.h>

static float numbers[64];
static n2_node_data node; /* reads nothing */

static void *call_kernel(void *unused) {
    const n2_call call = {.node = &node, .parts = 1, .out = {numbers, n2_dims(8, 8), N2_NUMBER}};
    (void)unused;
    n2_tell_accesses(&call, sizeof numbers[0]);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, call_kernel, NULL) != 0) return 0;
    for (int i = 0; i < 2; i++) (void)pthread_join(threads[i], NULL);
    return 0;
}
