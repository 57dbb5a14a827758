/* The verbs by number and by name: the only room that knows verbs and studies alike. */
#include "task/task.h"

#include <string.h>

#define VERB(task) extern const n2ce_task task;
#include "verb_list.h"
#undef VERB

#define VERB(task) &task,
static const n2ce_task *const verbs[] = {
#include "verb_list.h"
    NULL};

const n2ce_task *n2ce_task_at(size_t index) {
    return index < sizeof verbs / sizeof verbs[0] ? verbs[index] : NULL;
}

const n2ce_task *n2ce_task_find(const char *name) {
    if (!name) return NULL;
    for (size_t i = 0; verbs[i]; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    return NULL;
}
