/* error: a status for the caller, a message for the thread. Nothing here allocates or prints. */
#ifndef NR_ERROR_H
#define NR_ERROR_H

#include "../norch.h"

/* Notes the kind and the message of a failure in this thread; gives the kind back. */
int32_t nr_fail(int32_t kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a function that gives a pointer: NULL. */
#define NR_REFUSE(...) (nr_fail(__VA_ARGS__), NULL)

/* Where the last failure was of an allocation, which knows its bytes only: puts the name of the call before them. */
void nr_name_shortage(const char *name);

/* Leaves the function with the status of a call that failed. */
#define NR_TRY(call)                                 \
    do {                                             \
        int32_t nr_status = (call);                  \
        if (nr_status != NORCH_OK) return nr_status; \
    } while (0)

/* "(2, 3)" in a caller's buffer, for messages. */
#define NR_SHAPE_TEXT 160
const char *nr_shape_text(char text[NR_SHAPE_TEXT], int32_t ndim, const int64_t *shape);

#endif
