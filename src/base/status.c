#include "n2ce.h"

#define N2_TEXT_(x) #x
#define N2_TEXT(x)  N2_TEXT_(x)

const char *n2ce_version(void) {
    return N2_TEXT(N2CE_VERSION_MAJOR) "." N2_TEXT(N2CE_VERSION_MINOR) "." N2_TEXT(
        N2CE_VERSION_PATCH);
}

const char *n2ce_status_name(n2ce_status status) {
    switch (status) {
#define N2_CASE(name, value, text) \
    case N2CE_##name:              \
        return "N2CE_" #name;
        N2CE_STATUS_LIST(N2_CASE)
#undef N2_CASE
    }
    return "unknown status";
}

const char *n2ce_status_text(n2ce_status status) {
    switch (status) {
#define N2_CASE(name, value, text) \
    case N2CE_##name:              \
        return text;
        N2CE_STATUS_LIST(N2_CASE)
#undef N2_CASE
    }
    return "unknown status";
}
