/* mpi: MPI_Allreduce on the memory of a tensor. norch does not link with MPI: Python passes the address of the
 * function, and MPI's handles (norch/distributed/mpi.py). */
#include "../core/tensor.h"
#include "calls.h"

/* MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm). Handles are pointers in some MPI libraries and ints in
 * others; either is passed in a 64-bit register, of which a callee reads the low half for an int. */
typedef int (*all_reduce)(const void *, void *, int, intptr_t, intptr_t, intptr_t);

/* The int64 array that Python passes: these, and then the MPI datatype of each dtype of norch, 0 for none. */
enum { FUNCTION, IN_PLACE, OP, COMM, DATATYPES };

/* mpi_all_reduce(x, address of the array): reduces x in place, and returns the status of MPI. Does nothing and returns
 * None if x is not contiguous, not on the CPU, batched, empty, too large for an int, or has no datatype, or if this
 * thread records. */
NR_BUILTIN(mpi_all_reduce) {
    if (!nr_counted("mpi_all_reduce", 2, n)) return NULL;
    const int64_t *call = (const int64_t *)(intptr_t)PyLong_AsLongLong(given[1]);
    const norch_tensor *x = call && nr_is_tensor(given[0]) ? given[0] : NULL;
    if (PyErr_Occurred()) return NULL;
    if (!x || !x->contiguous || x->device_type != NORCH_CPU || x->type == nr_batched_class || x->numel == 0 ||
        x->numel > INT32_MAX || !call[DATATYPES + x->dtype] || nr_observing())
        return Py_NewRef(NR_NONE);
    void *thread = PyEval_SaveThread();
    const int status =
        ((all_reduce)(intptr_t)call[FUNCTION])((const void *)(intptr_t)call[IN_PLACE], x->data, (int)x->numel,
                                               call[DATATYPES + x->dtype], call[OP], call[COMM]);
    PyEval_RestoreThread(thread);
    return PyLong_FromLongLong(status);
}
