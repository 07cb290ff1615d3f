/* guards: conditions of a recording on Python's values (norch/program/conditions.py). A dict whose version
 * (PEP 509) is that of the last check is not read, nor a class; the pointer in a cell, or in another field, is its own
 * version. */
#include <string.h>

#include "../../core/error.h"
#include "../../core/memory.h"
#include "recording.h"

bool nr_dicts_have_versions;

static const uint64_t unknown;  /* a version */
#define NR_UNCHECKED UINT64_MAX /* no version */

static const uint64_t *version_of(void *object, nr_container_kind kind) {
    typedef struct dict {
        nr_object object;
        nr_ssize used;
        uint64_t version;
    } dict;
    return nr_dicts_have_versions && kind == NR_DICT ? &((const dict *)object)->version : &unknown;
}

bool nr_same_object(void *a, void *b) {
    if (a == b) return true;
    if (!a || !b) return false;
    void *type = ((nr_object *)a)->type;
    if (type != ((nr_object *)b)->type) return false;
    if (type == NR_AT(PyFloat_Type)) {
        const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (type != NR_AT(PyLong_Type) && type != NR_AT(PyUnicode_Type) && type != NR_AT(PyBytes_Type)) return false;
    return PyObject_RichCompareBool(a, b, NR_EQUAL) == 1;
}

bool nr_guards_name(const nr_guards *guards, const void *object) {
    for (int64_t i = 0; i < guards->guard_count; i++)
        if (guards->guards[i].value == object || guards->guards[i].key == object) return true;
    return false;
}

/* PyListObject. */
typedef struct list {
    nr_object object;
    nr_ssize size;
    void **items;
} list;

static inline bool same(void *a, void *b) { return a == b || nr_same_object(a, b); }

/* Whether the keys of a dict are those of a tuple, in its order. */
static bool keys_are(void *dict, void *keys) {
    nr_ssize position = 0;
    int64_t i = 0;
    const int64_t count = PyTuple_Size(keys);
    for (void *key, *value; PyDict_Next(dict, &position, &key, &value); i++)
        if (i == count || !same(PyTuple_GetItem(keys, i), key)) return false;
    return i == count;
}

int nr_calls_true(void *callable) {
    void *answer = PyObject_CallObject(callable, NULL);
    if (!answer) return -1;
    const int truth = PyObject_IsTrue(answer);
    Py_DecRef(answer);
    return truth;
}

/* The following: whether all guards of a container hold; -1 after an exception.
 * References that are found are borrowed. */

static int dict_holds(const nr_container *one) {
    for (const nr_guard *guard = one->first; guard < one->end; guard++) {
        if (guard->kind == NR_GUARD_ITEM) {
            void *found = PyDict_GetItemWithError(one->object, guard->key);
            if (!found && PyErr_Occurred()) return -1;
            if (!same(found, guard->value)) return false;
        } else if (guard->kind == NR_GUARD_SIZE) {
            if (PyDict_Size(one->object) != guard->number) return false;
        } else if (!keys_are(one->object, guard->value)) {
            return false;
        }
    }
    return true;
}

static bool list_holds(const nr_container *one) {
    for (const nr_guard *guard = one->first; guard < one->end; guard++) {
        /* layouts are known where dicts have versions: no call for each item */
        const list *items = one->object;
        const int64_t size = nr_dicts_have_versions ? items->size : PyList_Size(one->object);
        if (guard->kind == NR_GUARD_SIZE) {
            if (size != guard->number) return false;
            continue;
        }
        if (guard->number >= size) return false;
        void *found = nr_dicts_have_versions ? items->items[guard->number] : PyList_GetItem(one->object, guard->number);
        if (!same(found, guard->value)) return false;
    }
    return true;
}

static bool cell_holds(const nr_container *one) {
    void *found = PyCell_Get(one->object); /* NULL: empty */
    if (found) Py_DecRef(found);
    for (const nr_guard *guard = one->first; guard < one->end; guard++)
        if (!same(found, guard->value)) return false;
    return true;
}

static bool fields_hold(const nr_container *one) {
    for (const nr_guard *guard = one->first; guard < one->end; guard++)
        if (!same(*(void **)((char *)one->object + guard->number), guard->value)) return false;
    return true;
}

static int holds(const nr_container *one) {
    switch (one->kind) {
    case NR_DICT: return dict_holds(one);
    case NR_LIST: return list_holds(one);
    case NR_CELL: return cell_holds(one);
    case NR_FIELDS: return fields_hold(one);
    case NR_CALLABLE: return nr_calls_true(one->object);
    }
    return false;
}

/* The version is read before the comparisons, which may call Python and so change the dict. */
int nr_guards_hold(nr_guards *guards) {
    uint64_t changed = 0; /* no branches: most replays find nothing changed */
    for (int64_t i = 0; i < guards->versioned; i++) changed |= *guards->versions[i].now ^ guards->versions[i].checked;
    for (int64_t i = changed ? 0 : guards->versioned; i < guards->container_count; i++) {
        nr_version *version = &guards->versions[i];
        const uint64_t now = *version->now;
        if (now == version->checked) continue;
        const int held = holds(&guards->containers[i]);
        if (held != 1) return held;
        const nr_container *one = &guards->containers[i];
        /* an equal number or text is not held, so that another may come to lie there */
        const bool is_pointer = one->kind == NR_FIELDS || one->kind == NR_CELL;
        const bool is_held = is_pointer ? now == (uint64_t)(uintptr_t)one->first->value : now;
        version->checked = is_held && version->now != &unknown ? now : NR_UNCHECKED;
    }
    return true;
}

int nr_guards_change(nr_guards *watches) {
    bool changed = false;
    for (int64_t i = 0; i < watches->container_count; i++) {
        nr_version *version = &watches->versions[i];
        const uint64_t now = *version->now;
        if (now == version->checked) continue;
        const nr_container *one = &watches->containers[i];
        for (nr_guard *watch = one->first; watch < one->end; watch++) {
            void *found = PyDict_GetItemWithError(one->object, watch->key), *before = watch->value;
            if (!found) return PyErr_Occurred() ? -1 : true;
            if (found == before) continue;
            Py_IncRef(found);
            watch->value = found;
            Py_DecRef(before);
            changed = true;
        }
        version->checked = now ? now : NR_UNCHECKED;
    }
    return changed;
}

static nr_container_kind kind_of(void *object, nr_guard_kind kind) {
    const unsigned long flags = PyType_GetFlags(((nr_object *)object)->type);
    if (kind == NR_GUARD_FIELD) return NR_FIELDS;
    if (kind == NR_GUARD_CALL) return NR_CALLABLE;
    return flags & NR_TYPE_IS_DICT ? NR_DICT : flags & NR_TYPE_IS_LIST ? NR_LIST : NR_CELL;
}

/* The container of a guard: that of the guard before, or a new one. */
static nr_container *container_of(nr_guards *guards, void *object, nr_container_kind kind) {
    nr_container *next = guards->containers + guards->container_count;
    if (guards->container_count && next[-1].object == object && next[-1].kind == kind && kind != NR_FIELDS)
        return next - 1;
    nr_guard *first = guards->guards + guards->guard_count;
    *next = (nr_container){first, first, Py_NewRef(object), kind};
    guards->versions[guards->container_count] = (nr_version){version_of(object, kind), NR_UNCHECKED};
    guards->container_count++;
    return next;
}

/* Where a cell has its pointer (PyCellObject), if it is there. */
static const uint64_t *contents_of(void *cell) {
    void **field = (void **)((nr_object *)cell + 1), *found = PyCell_Get(cell);
    const bool is_there = *field == found;
    if (found) Py_DecRef(found);
    return is_there ? (const uint64_t *)field : &unknown;
}

static void read_row(nr_guards *guards, void *row) {
    void *object = PyTuple_GetItem(row, 0), *key = PyTuple_GetItem(row, 2);
    const nr_guard_kind kind = (nr_guard_kind)PyLong_AsLongLong(PyTuple_GetItem(row, 1));
    nr_container *container = container_of(guards, object, kind_of(object, kind));
    nr_guard *guard = container->end++;
    *guard = (nr_guard){.kind = kind};
    guards->guard_count++;
    if (kind == NR_GUARD_SIZE || kind >= NR_GUARD_FIELD || container->kind == NR_LIST)
        guard->number = PyLong_AsLongLong(key);
    else
        guard->key = Py_NewRef(key);
    if (kind != NR_GUARD_SIZE && PyTuple_Size(row) == 4) guard->value = Py_NewRef(PyTuple_GetItem(row, 3));
    nr_version *version = &guards->versions[guards->container_count - 1];
    if (sizeof(void *) < sizeof *version->now) return;
    if (kind == NR_GUARD_FIELD) version->now = (const uint64_t *)((char *)object + guard->number);
    if (kind == NR_GUARD_CALL && guard->value) version->now = (const uint64_t *)((char *)guard->value + guard->number);
    if (container->kind == NR_CELL) version->now = contents_of(object);
}

static void exchange(nr_guards *guards, int64_t i, int64_t j) {
    const nr_container container = guards->containers[i];
    const nr_version version = guards->versions[i];
    guards->containers[i] = guards->containers[j];
    guards->versions[i] = guards->versions[j];
    guards->containers[j] = container;
    guards->versions[j] = version;
}

int32_t nr_guards_read(nr_guards *guards, void *rows) {
    const int64_t count = rows == NR_NONE ? 0 : PyList_Size(rows);
    guards->versions = nr_malloc((size_t)count * sizeof *guards->versions);
    guards->containers = nr_malloc((size_t)count * sizeof *guards->containers);
    guards->guards = nr_malloc((size_t)count * sizeof *guards->guards);
    if (!guards->versions || !guards->containers || !guards->guards)
        return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory");
    for (int64_t i = 0; i < count; i++) read_row(guards, PyList_GetItem(rows, i));
    for (int64_t i = 0; i < guards->container_count; i++)
        if (guards->versions[i].now != &unknown) exchange(guards, i, guards->versioned++);
    return NORCH_OK;
}
