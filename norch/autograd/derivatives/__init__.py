"""The pages that answer "what happens in backward": one short entry an operation, one page a family.

g is the gradient of the result. Each method gives the gradient of one input; the tensors that it mentions
(self.x, self.a, self.b, self.c, self.out) are what the node saves. Gradients are summed back over broadcast
dimensions, and cast, by the form (autograd/forms.py). They are written in recorded operations, so derivatives of
derivatives come by themselves.
"""

from .copy import Cast, Cat, Clone, CopyInto, Pad, Stack
from .index import *
from .pointwise import *
from .reduce import *
from .view import *
