/* mpi: MPI's all_reduce on the memory of a tensor, in one call of Python. norch does not link to MPI: Python hands over the
 * address of its function, and its handles (norch/distributed/mpi.py). */
#include "../core/tensor.h"
#include "calls.h"

/* MPI_Allreduce(sent, received, count, datatype, op, comm). A handle is a pointer or an int, as the MPI has it; both go in a
 * register of 64 bits, of which an int is the low half. */
typedef int (*all_reduce)(const void *, void *, int, intptr_t, intptr_t, intptr_t);

/* What Python hands over, an array of int64: these, and then the datatype for each dtype of norch, 0 for none. */
enum { FUNCTION, IN_PLACE, OP, COMM, DATATYPES };

/* mpi_all_reduce(x, address of the array): what MPI returns for x, in place. None, and nothing is done, where more is needed: x
 * is not contiguous, not on the CPU, batched, empty or too large for an int, has no datatype, or this thread records. */
void *nr_py_mpi_all_reduce(void *self, void *const *given, int64_t n) {
    (void)self;
    if (!nr_counted("mpi_all_reduce", 2, n)) return NULL;
    const int64_t *call = (const int64_t *)(intptr_t)PyLong_AsLongLong(given[1]);
    const norch_tensor *x = call && nr_is_tensor(given[0]) ? given[0] : NULL;
    if (PyErr_Occurred()) return NULL;
    if (!x || !x->contiguous || x->device_type != NORCH_CPU || x->type == nr_batched_class || x->numel == 0 ||
        x->numel > INT32_MAX || !call[DATATYPES + x->dtype] || nr_observing()) {
        Py_IncRef(NR_NONE);
        return NR_NONE;
    }
    void *thread = PyEval_SaveThread();
    const int status =
        ((all_reduce)(intptr_t)call[FUNCTION])((const void *)(intptr_t)call[IN_PLACE], x->data, (int)x->numel,
                                               call[DATATYPES + x->dtype], call[OP], call[COMM]);
    PyEval_RestoreThread(thread);
    return PyLong_FromLongLong(status);
}
