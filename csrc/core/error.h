/* error: a failure is a status for the caller and a message of the thread. Nothing here allocates or prints. */
#ifndef NR_ERROR_H
#define NR_ERROR_H

#include "../norch_runtime.h"

/* Sets the kind and the message of the last failure of this thread; returns the kind. */
int32_t nr_fail(int32_t kind, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* The same for a function that returns a pointer. */
#define NR_REFUSE(...) (nr_fail(__VA_ARGS__), NULL)

/* Puts the name of a call before the message if that is of a failed allocation, or of a shape too large for one. */
void nr_name_shortage(const char *name);

/* Returns the status of a call if that failed. */
#define NR_TRY(call)                                 \
    do {                                             \
        int32_t nr_status = (call);                  \
        if (nr_status != NORCH_OK) return nr_status; \
    } while (0)

/* A shape for messages, "(2, 3)", in a compound literal, which lives until the enclosing block ends. */
#define nr_shape_text(ndim, shape) nr_write_shape((char[NR_SHAPE_TEXT]){0}, ndim, shape)
#define NR_SHAPE_TEXT 160
const char *nr_write_shape(char text[NR_SHAPE_TEXT], int32_t ndim, const int64_t *shape);

#endif
