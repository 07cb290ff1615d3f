/* error: see error.h. Each thread has its own message. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interpreter.h"

static _Thread_local char message[512];
static _Thread_local int32_t last_kind;

int32_t nr_fail(int32_t kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    last_kind = kind;
    if (nr_interpreter) nr_interpreter->raise(kind, message);
    return kind;
}

void nr_name_shortage(const char *name) {
    char text[sizeof message];
    if (strncmp(message, "out of memory", 13) && strncmp(message, "a tensor of shape", 17)) return;
    memcpy(text, message, sizeof text);
    nr_fail(last_kind, "%s: %s", name, text);
}

const char *norch_last_error(void) { return message; }

int32_t norch_last_error_kind(void) { return last_kind; }

const char *nr_write_shape(char text[NR_SHAPE_TEXT], int32_t ndim, const int64_t *shape) {
    int at = snprintf(text, NR_SHAPE_TEXT, "(");
    for (int32_t i = 0; i < ndim && at < NR_SHAPE_TEXT - 24; i++)
        at += snprintf(text + at, (size_t)(NR_SHAPE_TEXT - at), i ? ", %lld" : "%lld", (long long)shape[i]);
    snprintf(text + at, (size_t)(NR_SHAPE_TEXT - at), ndim == 1 ? ",)" : ")");
    return text;
}
