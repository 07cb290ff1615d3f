"""What is counted as the trunk: the files that every operation passes. The rest is a file for each family, or a topic.

lines.py counts it; tests/project/test_trunk.py runs `a + b`, `sum` and `backward`, and sees that nothing else runs but
the files of the families that these are.
A folder stands for the files in it, but for those that NOT_TRUNK names.
"""

TRUNK = {
    "C API": "csrc/norch.h csrc/ops.def csrc/dtypes.def csrc/python norch/_binding/library.py",
    "core": "csrc/core csrc/ops/ops.h csrc/cpu/memory.c",
    "tensor": "norch/_tensor/handle.py norch/tensor.py",
    "declaration": "norch/ops/__init__.py norch/ops/op.py norch/ops/_rows.py norch/ops/_operand.py norch/ops/_entry.py",
    "record": "norch/autograd/node.py norch/autograd/derivative.py norch/autograd/saved.py norch/autograd/record.py",
    "engine": "norch/autograd/engine.py norch/autograd/broadcast.py",
}
# Plans of families, which devices there are, messages of errors, conversions of copies and of elements, the text of
# norch.h, what only devices have, memory of others, copies between host and device, the system's calls; declarations
# of CPython, x[...], sequences of tensors as arguments, the writer of C at build time, what norch.capture and
# norch.compile record, norch.profiler, MPI's calls, shapes, numbers and arrays for Python, autocast and anomaly
# mode.
# Left out elsewhere: the choice of devices and instruction sets at load, no_grad() and the like, histories of views,
# writes in place, gradients of halves, and the families of norch_families.h.
NOT_TRUNK = (
    "csrc/core/fields.h csrc/core/backend.c csrc/core/error.c csrc/core/convert.h csrc/core/library.c "
    "csrc/core/observer.c csrc/core/data.c csrc/core/owner.c csrc/core/element.h csrc/core/element.c "
    "csrc/core/device.h csrc/core/wrap.c csrc/core/transfer.c csrc/core/transfer.h csrc/core/platform.c "
    "csrc/core/platform.h csrc/python/abi.h csrc/python/abi.c csrc/python/symbols.def csrc/python/getitem.c "
    "csrc/python/columns.h csrc/python/make_calls.py csrc/python/dlpack.c csrc/python/capture csrc/python/profile.c "
    "csrc/python/guard.c csrc/python/lookup.c csrc/python/mpi.c "
    "csrc/python/lapack.c csrc/python/attributes.c csrc/python/arrays.c csrc/python/values.c csrc/python/batched.c "
    "csrc/python/view_history.c csrc/python/view_record.c csrc/python/mode.c"
)

# Files of these families, by the beginning of their names, may run too: the engine copies gradients and makes the first
# of them, and the derivative of a sum is a view. SHARED: what loops of the CPU use, the system's calls for memory, and
# numbers as elements.
FAMILIES = "pointwise reduce copy view create"
SHARED = "csrc/cpu/cpu.h csrc/cpu/stream.h csrc/core/platform.c csrc/core/element.c csrc/ops/numbers.c"
