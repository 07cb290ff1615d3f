/* host_call: Python functions that a replay calls again, such as communication with other processes. */
#include "../../program/host_call.h"

#include "../../core/dispatch.h"
#include "../../core/interpreter.h"
#include "../../core/memory.h"
#include "../../core/observer.h"
#include "recording.h"

/* Calls callable(addresses of the memory in this run). A program may run with or without the GIL. */
static int32_t run(const nr_host_call_plan *plan) {
    const int state = PyGILState_Ensure();
    nr_count_running(1);
    void *addresses = PyTuple_New(plan->count), *arguments = PyTuple_New(1), *answer = NULL;
    for (int64_t i = 0; addresses && i < plan->count; i++)
        PyTuple_SetItem(addresses, i, PyLong_FromLongLong((intptr_t)plan->memory[i].data));
    if (addresses && arguments) {
        PyTuple_SetItem(arguments, 0, addresses);
        addresses = NULL;
        answer = PyObject_CallObject(plan->callable, arguments);
    }
    if (addresses) Py_DecRef(addresses);
    if (arguments) Py_DecRef(arguments);
    if (answer) Py_DecRef(answer);
    nr_count_running(-1);
    PyGILState_Release(state);
    return answer ? NORCH_OK : NR_RAISED;
}

static int32_t tell(nr_observer *observer, void *const *args, nr_host_memory *memory) {
    const char *text = PyUnicode_AsUTF8AndSize(args[1], NULL);
    if (!text) return NR_RAISED;
    nr_host_call_plan plan = {run, args[0], 0xcbf29ce484222325ull, memory, PyTuple_Size(args[2])};
    for (; *text; text++) plan.hash = (plan.hash ^ (unsigned char)*text) * 0x100000001b3ull; /* FNV-1a */
    nr_call call = {
        .family = NR_HOST_CALL, .dtype = NORCH_UINT8, .plan = &plan, .backend = nr_backend_find(NORCH_CPU, 0)};
    for (int64_t i = 0; i < plan.count; i++) {
        norch_tensor *x = PyTuple_GetItem(args[2], i);
        observer->passed(observer, x);
        /* a view of nothing may begin at the end of its storage, which is the address of another */
        memory[i] = (nr_host_memory){x->numel ? x->data : x->storage->data, x->numel * nr_size_of(x->dtype),
                                     PyObject_IsTrue(PyTuple_GetItem(args[3], i)) == 1};
        call.backend = x->storage->backend;
    }
    return observer->host_call(observer, &call);
}

/* record_host_call(callable, what, tensors, written): notes a call of callable(addresses of the tensors), which the
 * caller has just made; replays call it at this point. The tensors are contiguous; written: for each, whether the call
 * writes to it. what: a text, equal for calls that do the same. The recording holds no reference to callable. */
NR_BUILTIN(record_host_call) {
    const int64_t count = n == 4 ? PyTuple_Size(args[2]) : -1;
    bool fits = count >= 0 && PyTuple_Size(args[3]) == count;
    for (int64_t i = 0; i < count && fits; i++) {
        const norch_tensor *x = PyTuple_GetItem(args[2], i);
        fits = nr_is_tensor(x) && x->storage && x->contiguous;
    }
    if (!fits) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError,
                            "record_host_call: takes a callable, a text, a tuple of contiguous tensors "
                            "and one of as many bools");
        return NULL;
    }
    nr_observer *observer = nr_observing();
    if (observer && observer->host_call) {
        nr_host_memory *memory = nr_malloc((size_t)count * sizeof *memory);
        if (!memory) return nr_fail(NORCH_ERROR_MEMORY, "capture: out of memory"), NULL;
        const int32_t status = tell(observer, args, memory);
        nr_free(memory);
        if (status != NORCH_OK) return NULL;
    }
    return Py_NewRef(NR_NONE);
}

/* unobserved(callable): the result of callable(), whose calls a recording of this thread does not see. */
NR_BUILTIN(unobserved) {
    if (n != 1) {
        PyErr_SetString(PyExc_TypeError, "unobserved: takes a callable");
        return NULL;
    }
    nr_observer *observer = nr_observer_here();
    nr_observe(NULL);
    const bool was_of_all = nr_observer_here() == observer;
    void *result = PyObject_CallObject(args[0], NULL);
    if (!was_of_all) nr_observe(observer);
    return result;
}

/* recording(): whether this thread records. */
NR_BUILTIN(recording) { return PyBool_FromLong(nr_observing() != NULL); }

/* note_unseen(what): Python is about to do something that a recording cannot follow; raises if the recording is
 * strict. */
NR_BUILTIN(note_unseen) {
    if (n == 1 && nr_observing()) {
        const char *text = PyUnicode_AsUTF8AndSize(args[0], NULL);
        if (!text || nr_note_unseen(text) != NORCH_OK) return NULL;
    }
    return Py_NewRef(NR_NONE);
}
