/* mpi: MPI_Allreduce on the memory of a tensor. norch does not link with MPI: Python passes the address of the
 * function, and MPI's handles (norch/distributed/mpi.py). */
#include "../core/tensor.h"
#include "calls.h"

/* MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm). Handles are pointers in some MPI libraries and ints in
 * others; either is passed in a 64-bit register, of which a callee reads the low half for an int. */
typedef int (*all_reduce)(const void *, void *, int, intptr_t, intptr_t, intptr_t);

/* The int64 array that Python passes: these, and then the MPI datatype of each dtype of norch, 0 for none. AGREED: the
 * communicator on which ranks compare their calls, 0 for none; with the datatype of int64, and the operation max. */
enum { FUNCTION, IN_PLACE, OP, COMM, AGREED, INT64, MAX, DATATYPES };

/* mpi_all_reduce(x, address of the array, number): reduces x in place, and returns the status of MPI; -1, and
 * nothing is reduced, if the number that stands for the call is not that of all ranks. Does nothing and
 * returns None if x is not contiguous, not on the CPU, batched, empty, too large for an int, or has no
 * datatype, or if this thread records. */
NR_BUILTIN(mpi_all_reduce) {
    if (!nr_counted("mpi_all_reduce", 3, n)) return NULL;
    const int64_t *call = (const int64_t *)(intptr_t)PyLong_AsLongLong(args[1]);
    const norch_tensor *x = call && nr_is_tensor(args[0]) ? args[0] : NULL;
    const int64_t number = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (!x || !x->contiguous || x->device_type != NORCH_CPU || x->type == nr_batched_class || x->numel == 0 ||
        x->numel > INT32_MAX || !call[DATATYPES + x->dtype] || nr_observing())
        return Py_NewRef(NR_NONE);
    void *thread = PyEval_SaveThread();
    const all_reduce function = (all_reduce)(intptr_t)call[FUNCTION];
    const void *in_place = (const void *)(intptr_t)call[IN_PLACE];
    int64_t pair[] = {number, -number}; /* to the largest, and the smallest, negated */
    int status = call[AGREED] ? function(in_place, pair, 2, call[INT64], call[MAX], call[AGREED]) : 0;
    if (!status && pair[0] != -pair[1])
        status = -1;
    else if (!status)
        status = function(in_place, x->data, (int)x->numel, call[DATATYPES + x->dtype], call[OP], call[COMM]);
    PyEval_RestoreThread(thread);
    return PyLong_FromLongLong(status);
}
