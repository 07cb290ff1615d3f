"""``norch.array_api``: the array API standard (data-apis.org/array-api, 2024.12) over norch's tensors.

It is what ``x.__array_namespace__()`` gives to libraries that are written for the standard (scikit-learn, SciPy, einops
and others). Names and arguments are the standard's: ``axis`` and ``keepdims``, 0-d arrays that promote as others do,
sums of integers in int64. All of it has derivatives where norch's functions have them. Left out: unsigned integers
beyond uint8, which norch lacks, and the extension fft.

>>> import norch
>>> x = norch.ones(2, 3)
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=1, keepdims=True)
tensor([[3.],
        [3.]])
"""

from math import e, inf, nan, pi  # noqa: F401

from .._package.exports import publish as _publish
from ..dtype import float16 as float16  # of which scikit-learn asks whether there is one
from . import _creation, _elementwise, _functions
from . import linalg as linalg
from ._creation import *  # noqa: F403
from ._creation import __array_namespace_info__ as __array_namespace_info__
from ._elementwise import *  # noqa: F403
from ._functions import *  # noqa: F403
from .linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401

__array_api_version__ = "2024.12"
newaxis = None

globals().update(_creation.STANDARD)

_OWN = "__array_api_version__ e inf linalg matmul matrix_transpose nan newaxis pi tensordot vecdot".split()
__all__ = sorted([*_OWN, *_creation.__all__, *_creation.STANDARD, *_elementwise.__all__, *_functions.__all__])
_publish(globals())
