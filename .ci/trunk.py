"""What is counted as the trunk: what every operation passes. The rest is a page for each family.

lines.py counts it; tests/test_trunk.py runs `a + b`, `sum` and `backward`, and sees that nothing else runs but the
pages of the families that these are. A folder stands for the files in it, but for those that NOT_TRUNK names.
"""

TRUNK = {
    "border": "csrc/norch.h csrc/ops.def csrc/dtypes.def csrc/python norch/_lib.py",
    "core": "csrc/core csrc/backends.c csrc/ops/ops.h csrc/cpu/cpu.c csrc/cpu/memory.c",
    "handle": "norch/_handle.py norch/tensor.py",
    "declaration": "norch/ops/__init__.py norch/ops/op.py norch/ops/_rows.py norch/ops/_operand.py",
    "record": "norch/autograd/node.py norch/autograd/record.py norch/autograd/grad_mode.py norch/autograd/inplace.py",
    "engine": "norch/autograd/__init__.py norch/autograd/engine.py norch/autograd/broadcast.py",
}
# Plans of the families, conversions of copies, the stream of random numbers, x[...], and what norch.capture records.
NOT_TRUNK = (
    "csrc/core/convert.h csrc/python/region.c csrc/python/recording.h csrc/python/recording.c csrc/python/replay.c"
)

# Files of these families, by the beginning of their names, may run too: the engine copies gradients and makes the first
# of them, and the derivative of a sum is a view. Loops of the CPU share the last.
FAMILIES = "pointwise reduce copy view create"
SHARED = "csrc/cpu/stream.h"
