"""Reverse-mode automatic differentiation.

- The graph: node.py (nodes), derivative.py and saved.py (node classes of operations, and what their nodes save),
  record.py and differentiable.py (how operations record nodes), inplace.py and view_history.py (in-place writes and
  views). csrc/python/node.c makes the nodes.
- The reverse walk: engine.py (backward()), gradients.py (grad()), targets.py (which nodes a walk visits), broadcast.py
  (gradients of broadcast inputs), hooks.py, anomaly.py (finds the operation behind a NaN), levels.py (gradients that
  vmap sums).
- Gradients of gradients: formula.py (of fused kernels), dependence.py (inputs with derivative 0). region.py walks
  through a part of the graph, for checkpoints and norch.compile.
- For users: grad_mode.py (no_grad() and the like), function.py (custom operations), transforms.py and functional.py
  (Jacobians and products with them), saved_hooks.py, saved_names.py (PyTorch's names of what a node saved).

The derivative of an operation is declared beside the operation, in norch/ops.
"""

from .._package.exports import publish
from .._package.typing import TYPE_CHECKING
from .grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function", "GradcheckError", "backward", "detect_anomaly", "enable_grad", "functional", "grad", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_grad_enabled",
    "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

if TYPE_CHECKING:
    from . import functional, graph
    from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
    from .engine import backward
    from .function import Function, once_differentiable
    from .gradients import grad

publish(
    globals(),
    {
        ".": "forward_ad functional graph",
        ".anomaly": "detect_anomaly is_anomaly_check_nan_enabled is_anomaly_enabled set_detect_anomaly",
        ".engine": "backward",
        ".function": "Function once_differentiable",
        ".gradients": "grad",
        "norch.testing": "GradcheckError gradcheck gradgradcheck",
        "norch.compat.legacy": "Variable",
    },
)
