/* lapack: calls of LAPACK and BLAS on batches of matrices. norch does not link with them: Python passes functions of
 * scipy.linalg.cython_lapack and cython_blas, capsules whose names are the signatures (norch/ops/linalg/lapack.py). */
#include <string.h>

#include "../core/tensor.h"
#include "calls.h"

enum { MOST = 16 };

typedef struct argument {
    char *address; /* all arguments of Fortran are addresses */
    int64_t step;  /* bytes from one matrix of the batch to the next */
    int number;    /* where an integer is stored */
    norch_storage *storage;
} argument;

/* Whether the signature, from here on, begins with a parameter of such a type. */
static bool is_of(const char *signature, const char *type) { return !strncmp(signature, type, strlen(type)); }

static bool take(argument *a, void *from, const char *signature, int64_t batch) {
    const unsigned long flags = PyType_GetFlags(((nr_object *)from)->type);
    const bool is_shared = flags & NR_TYPE_IS_TUPLE; /* (x,): the same for all matrices */
    const norch_tensor *x = is_shared ? PyTuple_GetItem(from, 0) : from;
    if (!x) return false;
    if (flags & NR_TYPE_IS_INTEGER && is_of(signature, "int *")) {
        const long long value = PyLong_AsLongLong(from);
        if (PyErr_Occurred()) return false;
        if (value != (int)value) return nr_refuse("lapack", "an int of 32 bits", from);
        a->number = (int)value;
        a->address = (char *)&a->number;
        return true;
    }
    if (flags & NR_TYPE_IS_TEXT && is_of(signature, "char *"))
        return (a->address = (char *)(uintptr_t)PyUnicode_AsUTF8AndSize(from, NULL)) != NULL;
    if (!nr_is_tensor(x) || x->type == nr_batched_class || x->device_type != NORCH_CPU || !x->contiguous ||
        is_of(signature, "int *") != (x->dtype == NORCH_INT32) || is_of(signature, "char *"))
        return nr_refuse("lapack", "an argument of the routine's signature", from);
    a->address = x->data;
    a->step = is_shared || batch == 0 ? 0 : x->numel / batch * nr_size_of(x->dtype);
    a->storage = nr_storage_retain(x->storage); /* another thread may give x other memory */
    return true;
}

#define P void *
static void run(void (*f)(void), int64_t count, P const *a) {
    switch (count) {
    case 5: ((void (*)(P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4]); break;
    case 6: ((void (*)(P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5]); break;
    case 7: ((void (*)(P, P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6]); break;
    case 8: ((void (*)(P, P, P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]); break;
    case 9: ((void (*)(P, P, P, P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]); break;
    case 11:
        ((void (*)(P, P, P, P, P, P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                                       a[10]);
        break;
    default:
        ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P))f)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                                             a[10], a[11], a[12]);
    }
}
#undef P

/* lapack(capsule, batch, arguments...): calls the routine for each of `batch` matrices. A tensor has the arguments of
 * all matrices, one after the other, without gaps; (x,) is the argument of all. Text and integers are passed unchanged.
 * Returns None. The caller has checked the sizes of the tensors. */
NR_BUILTIN(lapack) {
    const char *signature = n > 2 ? PyCapsule_GetName(args[0]) : NULL;
    void *found = signature ? PyCapsule_GetPointer(args[0], signature) : NULL;
    if (!found) return PyErr_Clear(), PyErr_Format(PyExc_TypeError, "lapack: takes a capsule with a name");
    const int64_t batch = PyLong_AsLongLong(args[1]), count = n - 2;
    if (PyErr_Occurred() || nr_note_unseen("LAPACK reads the elements of a tensor") != NORCH_OK) return NULL;
    int64_t wanted = 0;
    for (const char *at = signature; *at; at++) wanted += *at == '*';
    const bool is_supported = (5 <= count && count <= 9) || count == 11 || count == 13;
    if (wanted != count || !is_supported || !is_of(signature, "void ("))
        return PyErr_Format(PyExc_TypeError, "lapack: %lld arguments for %s", (long long)count, signature);

    argument arguments[MOST] = {0};
    bool fits = true;
    const char *at = signature + strlen("void (");
    for (int64_t i = 0; fits && i < count; i++) {
        fits = take(&arguments[i], args[i + 2], at, batch);
        const char *comma = strchr(at, ',');
        at = comma ? comma + 2 : at;
    }
    if (fits) {
        void (*routine)(void) = NULL;
        memcpy(&routine, &found, sizeof routine);
        void *thread = PyEval_SaveThread(), *addresses[MOST];
        for (int64_t b = 0; b < batch; b++) {
            for (int64_t i = 0; i < count; i++) addresses[i] = arguments[i].address + b * arguments[i].step;
            run(routine, count, addresses);
        }
        PyEval_RestoreThread(thread);
    }
    for (int64_t i = 0; i < count; i++)
        if (arguments[i].storage) nr_storage_release(arguments[i].storage);
    return fits ? Py_NewRef(NR_NONE) : NULL;
}
