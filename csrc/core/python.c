/* python: see python.h. The layouts below are those of CPython's stable ABI (PEP 384): PyObject, PyType_Spec,
 * PyType_Slot and PyMemberDef. */
#include "python.h"

#include <stddef.h>

#include "tensor.h"

typedef struct member {
    const char *name;
    int type;
    ptrdiff_t offset;
    int flags;
    const char *doc;
} member;

typedef struct slot {
    int slot;
    void *value;
} slot;

typedef struct spec {
    const char *name;
    int basicsize, itemsize;
    unsigned int flags;
    slot *slots;
} spec;

#define SLOT_DEALLOC 52
#define SLOT_MEMBERS 72
#define MEMBER_INT32 1
#define MEMBER_INT64 17
#define MEMBER_READONLY 1
#define TYPE_DISALLOW_INSTANTIATION (1u << 7)
#define TYPE_DEFAULT (1u << 18)

_Static_assert(offsetof(norch_tensor, references) == 0, "a Python object begins with its references");
_Static_assert(offsetof(norch_tensor, type) == sizeof(int64_t), "and goes on with its type");

/* What Python may read of a tensor without a call. */
static member members[] = {
#define FIELD(name, kind) {#name, MEMBER_##kind, offsetof(norch_tensor, name), MEMBER_READONLY, NULL}
    FIELD(data, INT64),  FIELD(numel, INT64),       FIELD(offset, INT64),       FIELD(dtype, INT32),
    FIELD(ndim, INT32),  FIELD(device_type, INT32), FIELD(device_index, INT32), FIELD(contiguous, INT32),
    FIELD(mixed, INT32), {NULL, 0, 0, 0, NULL},
#undef FIELD
};

void *nr_python_type;

static struct {
    void *(*save_thread)(void);
    void (*restore_thread)(void *);
    int (*holds_gil)(void);
    void *(*make_type)(spec *);
    void (*raise)(void *exception, const char *message);
    void *exceptions[NORCH_ERROR_ZERO_DIVISION + 1];
} python;

int32_t norch_bind_python(const void *const *functions, const void *const *exceptions) {
    python.save_thread = *(void *(**)(void))(void *)&functions[0];
    python.restore_thread = *(void (**)(void *))(void *)&functions[1];
    python.holds_gil = *(int (**)(void))(void *)&functions[2];
    python.make_type = *(void *(**)(spec *))(void *)&functions[3];
    python.raise = *(void (**)(void *, const char *))(void *)&functions[4];
    for (int i = 0; i <= NORCH_ERROR_ZERO_DIVISION; i++) python.exceptions[i] = *(void *const *)&exceptions[i];
    void (*dealloc)(norch_tensor *) = nr_tensor_free;
    slot slots[] = {{SLOT_DEALLOC, *(void **)(void *)&dealloc}, {SLOT_MEMBERS, members}, {0, NULL}};
    spec tensor = {"norch.handle", sizeof(norch_tensor), 0, TYPE_DEFAULT | TYPE_DISALLOW_INSTANTIATION, slots};
    nr_python_type = python.make_type(&tensor);
    return nr_python_type ? NORCH_OK : NORCH_ERROR_MEMORY;
}

void nr_python_raise(int32_t kind, const char *message) {
    if (nr_python_type && python.holds_gil()) python.raise(python.exceptions[kind], message);
}

void *nr_python_unlock(void) { return nr_python_type ? python.save_thread() : NULL; }

void nr_python_lock(void *thread) {
    if (thread) python.restore_thread(thread);
}
