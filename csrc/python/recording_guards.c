/* recording_guards: conditions of a recording on Python's dicts, lists and variables. A dict whose version (PEP 509) is
 * that of the last check is not read. */
#include <string.h>

#include "../core/error.h"
#include "../core/memory.h"
#include "recording.h"

bool nr_dicts_have_versions;

static const uint64_t *version_of(void *object, nr_container_kind kind) {
    typedef struct dict {
        nr_object object;
        nr_ssize used;
        uint64_t version;
    } dict;
    static const uint64_t unknown;
    return nr_dicts_have_versions && kind == NR_DICT ? &((const dict *)object)->version : &unknown;
}

bool nr_same_object(void *a, void *b) {
    if (a == b) return true;
    void *type = ((nr_object *)a)->type;
    if (type != ((nr_object *)b)->type) return false;
    if (type == &PyFloat_Type) {
        const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (!(PyType_GetFlags(type) & (NR_TYPE_IS_INTEGER | NR_TYPE_IS_TEXT | NR_TYPE_IS_BYTES))) return false;
    return PyObject_RichCompareBool(a, b, NR_EQUAL) == 1;
}

/* Whether container[key], a borrowed reference, is as the guard says; -1 after an exception. */
static int holds(const nr_container *container, const nr_guard *guard) {
    void *object = container->object, *found;
    if (container->kind == NR_CELL) {
        found = PyCell_Get(object); /* NULL: empty */
        if (found) Py_DecRef(found);
    } else if (container->kind == NR_LIST) {
        if (!guard->key) return PyList_Size(object) == guard->size;
        found = PyList_GetItem(object, guard->size);
        if (!found) PyErr_Clear(); /* it is shorter now */
    } else {
        if (!guard->key) return PyDict_Size(object) == guard->size;
        found = PyDict_GetItemWithError(object, guard->key);
        if (!found && PyErr_Occurred()) return -1;
    }
    return found == guard->value || (found && nr_same_object(found, guard->value));
}

/* The version is read before the comparisons, which may call Python and so change the dict. */
int nr_guards_hold(nr_guards *guards) {
    nr_container *end = guards->containers + guards->container_count;
    for (nr_container *one = guards->containers; one < end; one++) {
        const uint64_t version = *one->version;
        if (version == one->checked && version) continue;
        for (const nr_guard *guard = one->first; guard < one->end; guard++) {
            const int held = holds(one, guard);
            if (held != 1) return held;
        }
        one->checked = version;
    }
    return true;
}

int nr_guards_change(nr_guards *watches) {
    bool changed = false;
    nr_container *end = watches->containers + watches->container_count;
    for (nr_container *one = watches->containers; one < end; one++) {
        const uint64_t version = *one->version;
        if (version == one->checked && version) continue;
        for (nr_guard *watch = one->first; watch < one->end; watch++) {
            void *found = PyDict_GetItemWithError(one->object, watch->key), *before = watch->value;
            if (!found) return PyErr_Occurred() ? -1 : true;
            if (found == before) continue;
            Py_IncRef(found);
            watch->value = found;
            Py_DecRef(before);
            changed = true;
        }
        one->checked = version;
    }
    return changed;
}

/* The container of a guard: that of the guard before, or a new one. */
static nr_container *container_of(nr_guards *guards, void *object) {
    nr_container *next = guards->containers + guards->container_count;
    if (guards->container_count && next[-1].object == object) return next - 1;
    const unsigned long flags = PyType_GetFlags(((nr_object *)object)->type);
    const nr_container_kind kind = flags & NR_TYPE_IS_DICT ? NR_DICT : flags & NR_TYPE_IS_LIST ? NR_LIST : NR_CELL;
    nr_guard *first = guards->guards + guards->guard_count;
    *next = (nr_container){version_of(object, kind), 0, first, first, Py_NewRef(object), kind};
    guards->container_count++;
    return next;
}

static void read_row(nr_guards *guards, void *row) {
    void *key = PyTuple_GetItem(row, 1), *value = PyTuple_GetItem(row, 2);
    nr_container *container = container_of(guards, PyTuple_GetItem(row, 0));
    nr_guard *guard = container->end++;
    *guard = (nr_guard){0};
    guards->guard_count++;
    if (key == NR_NONE) {
        guard->size = PyLong_AsLongLong(value);
        return;
    }
    guard->key = Py_NewRef(key);
    guard->value = Py_NewRef(value);
    if (container->kind == NR_LIST) guard->size = PyLong_AsLongLong(key);
}

int32_t nr_guards_read(nr_guards *guards, void *rows) {
    const int64_t count = rows == NR_NONE ? 0 : PyList_Size(rows);
    guards->containers = nr_malloc((size_t)count * sizeof *guards->containers);
    guards->guards = nr_malloc((size_t)count * sizeof *guards->guards);
    if (!guards->containers || !guards->guards) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (int64_t i = 0; i < count; i++) read_row(guards, PyList_GetItem(rows, i));
    return NORCH_OK;
}
