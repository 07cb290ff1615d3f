"""The operations and what they must give, a row a way of calling one, collected from the files beside: see case.py."""

import cases_activation  # noqa: F401  (adds its cases)
import cases_beyond  # noqa: F401
import cases_composite  # noqa: F401
import cases_index  # noqa: F401
import cases_pointwise  # noqa: F401
import cases_products  # noqa: F401
import cases_reduce  # noqa: F401
import cases_scan  # noqa: F401
import cases_shape  # noqa: F401
import cases_statistics  # noqa: F401
from case import CASES

# Operations that only complex numbers have a meaning for: tests/ops/test_complex.py tries them.
COMPLEX = set("angle complex conj conj_physical imag is_complex polar real sgn view_as_complex view_as_real".split())

# Public functions of norch that are no operations on elements.
NO_OPERATIONS = {
    "Generator", "Size", "Tensor", "arange", "as_tensor", "bernoulli", "device", "dtype", "empty", "empty_like",
    "enable_grad", "eye", "from_numpy", "full", "full_like", "get_default_dtype", "get_num_threads", "is_grad_enabled",
    "is_tensor", "linspace", "manual_seed", "no_grad", "ones", "ones_like", "promote_types", "rand", "rand_like",
    "randint", "randn", "randn_like", "randperm", "seed", "set_default_dtype", "set_grad_enabled", "set_num_threads",
    "tensor", "zeros", "zeros_like", "allclose", "broadcast_shapes", "can_cast", "finfo", "iinfo", "is_floating_point",
    "result_type", "equal", "frombuffer", "celu_", "rrelu_", "selu_", "threshold_",
    "asarray", "empty_strided", "get_rng_state", "initial_seed", "logspace", "normal", "randint_like", "scalar_tensor",
    "set_rng_state", "tril_indices", "triu_indices", "is_nonzero", "numel", "memory_format", "is_anomaly_enabled",
    "is_anomaly_check_nan_enabled", "set_anomaly_enabled", "multinomial", "poisson",
    "get_default_device", "set_default_device",
    "inference_mode", "isin", "is_same_size", "is_signed", "as_strided_scatter", "set_printoptions", "typename",
    "ArgumentError", "BoundsError", "CaptureError", "DTypeError", "DeviceError", "DivisionError", "Error", "MetaError",
    "LinAlgError", "OutOfMemoryError", "ShapeError",
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window", "stft",
}  # fmt: skip

# Rows whose functions have a case, or tests in test_numeric.py or test_random.py.
PARTS_OF_FUNCTIONS = {"significand", "exponent", "round_decimals", "round_tens", "nextafter", "poisson"}

BY_NAME = {case.name: case for case in CASES}
