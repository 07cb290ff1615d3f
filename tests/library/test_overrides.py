"""__torch_function__: subclasses of Tensor keep their class, override functions, methods and attributes as in PyTorch;
objects that are no tensors, modes, and what norch.overrides offers."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch import nn, overrides

F = nn.functional


class Kept(norch.Tensor):
    """Does as Tensor."""


class Meta(norch.Tensor):
    """Has metadata that its results get."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs)
        if isinstance(found, Meta):
            found.about = next((x.about for x in args if hasattr(x, "about")), None)
        return found


def logging(lib: Any, log: list[Any]) -> Any:
    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func, func.__name__, types))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


CALLS = """
x+p p+x x+1 1+x 1-x x-1 x-p p-x x*2 2*x x/2 x**2 2**x x@p p@x -x +x abs(x) x>0 x==1 1<x x!=p x//2 2//x x%2 2%x
x.exp() x.sum() lib.exp(x) lib.add(p,x) p.add(x) lib.cat([p,x]) lib.stack((x,p)) F.linear(p,x) F.relu(x) F.softmax(x,0)
F.layer_norm(x,(3,)) lib.sum(x) x[0] x[x>0] x.T x.mT x.data x.view(-1) x.reshape(-1) lib.reshape(x,(-1,)) list(x)[0]
x.to('cpu') x.float() x.clone() x.detach() x.requires_grad_() x.add_(1) lib.max(x,0)[0] x.max(0).values x.unbind()[0]
lib.where(x>0,x,p) lib.zeros_like(x) x.new_zeros(2) lib.einsum('ij->i',x) lib.split(x,1)[0] x.split(1)[0] x.cpu()
lib.linalg.norm(x) lib.linalg.inv(x+lib.eye(3)) x.real x.contiguous() lib.broadcast_tensors(x,p)[0] F.pad(x,(1,1))
F.interpolate(x[None,None],size=(2,2)) x.masked_fill(x>0,1) x.copy_(p) p+x*p x.pow(2) lib.square(x) x.sigmoid()
x.half()
x.unflatten(0,(3,1)) x.shape x.dtype x.size() x.numel() x.dim() len(x) x.tolist() x[0,0].item() float(x[0,0]) x.ndim
bool(x[0,0]>0) x.numpy() x.device x.requires_grad x.is_leaf x.stride() lib.equal(x,p) x.is_contiguous() x.type
lib.is_floating_point(x) x.data_ptr() lib.fft.fft(x) repr(x) x.__setitem__(0,1) lib.meshgrid(x[0],x[1]) hash(x)
"""


def seen(lib: Any, call: str) -> tuple[str, list[str], int]:
    """The class of the result of a call, the names of the functions that are overridden, and the calls' types."""
    log: list[Any] = []
    kind = logging(lib, log)
    x, p = lib.full((3, 3), 0.5).as_subclass(kind), lib.full((3, 3), 0.25)
    found = eval(call, {"x": x, "p": p, "lib": lib, "F": lib.nn.functional})
    same = {"linalg_norm": "norm", "linalg_inv": "inv", "fft_fft": "fft", "dim": "", "__rdiv__": "__rtruediv__"}
    names = [same.get(name, name) for _, name, _ in log]
    return type(found).__name__, [name for name in names if name], len({types for *_, types in log})


@pytest.mark.parametrize("call", CALLS.split())
def test_like_torch(torch: Any, call: str) -> None:
    ours, theirs = seen(norch, call), seen(torch, call)
    assert ours[1] == theirs[1]
    if not ("type" in call or "max(" in call):
        assert ours[0] == theirs[0].replace("builtin_function_or_method", "method")


def test_functions_are_the_public_ones() -> None:
    log: list[Any] = []
    kind = logging(norch, log)
    x = norch.ones(2).as_subclass(kind)
    for call, wanted in [
        (lambda: norch.add(x, 1), norch.add),
        (lambda: x.add(1), norch.Tensor.add),
        (lambda: x + 1, norch.Tensor.add),
        (lambda: F.linear(x, norch.ones(3, 2)), F.linear),
        (lambda: x.shape, norch.Tensor.shape.__get__),
        (lambda: x.grad, norch.Tensor.grad.__get__),
        (lambda: x[0], norch.Tensor.__getitem__),
        (lambda: norch.linalg.norm(x), norch.linalg.norm),
        (lambda: nn.init.zeros_(x), nn.init.zeros_),
        (lambda: norch.ones(2).copy_(x), norch.Tensor.copy_),
    ]:
        log.clear()
        call()
        assert log[0][0] == wanted
        assert wanted in {wanted: 1}
        assert overrides.resolve_name(log[0][0]) is not None


def test_metadata_go_on() -> None:
    x = norch.ones(2, 2).as_subclass(Meta)
    x.about = "a"
    assert (x * 2).about == x.mean().about == norch.stack([x.T[0], x[1]], 0).__class__ and 0 or (x * 2).about == "a"
    assert norch.sin(x)[0].t().about == "a"
    y = copy.deepcopy(x)
    assert (type(y), y.about) == (Meta, "a")
    y = pickle.loads(pickle.dumps(x))
    assert (type(y), y.about) == (Meta, "a")


def test_results_keep_the_class_and_the_graph() -> None:
    p = norch.ones(2, requires_grad=True)
    x = p.as_subclass(Kept)
    assert not x.is_leaf
    y = (x * 3).sum()
    assert type(y) is Kept
    y.backward()
    assert p.grad.tolist() == [3.0, 3.0]
    leaf = norch.Tensor._make_subclass(Kept, norch.ones(2), True)
    (leaf.exp() + leaf).sum().backward()
    assert type(leaf.grad) is norch.Tensor
    assert leaf.is_leaf
    assert type(nn.Linear(2, 2)(norch.ones(1, 2).as_subclass(Kept))) is Kept
    assert type(Kept([1.0]) + nn.Parameter(norch.ones(1))) is Kept
    assert type(nn.Parameter(norch.ones(1)) * 2) is norch.Tensor
    assert repr(norch.ones(1).as_subclass(Kept)) == "Kept([1.])"
    assert type(norch.ones(2).as_subclass(Kept).as_subclass(norch.Tensor)) is norch.Tensor
    with pytest.raises(TypeError, match="as_subclass: expected a subclass of Tensor"):
        norch.ones(2).as_subclass(int)  # type: ignore[type-var]
    whole = norch.Tensor._make_wrapper_subclass(Kept, (2, 3), dtype=norch.int64, requires_grad=False)
    assert (type(whole), tuple(whole.shape), whole.dtype) == (Kept, (2, 3), norch.int64)


def test_a_class_with_torch_dispatch_is_refused() -> None:
    class Dispatching(norch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("called")

    class Inheriting(Dispatching): ...

    class Disabled(Dispatching):
        __torch_dispatch__ = norch._C._disabled_torch_dispatch_impl

    x = norch.ones(2)
    for make in (x.as_subclass, lambda cls: norch.Tensor._make_subclass(cls, x), lambda cls: cls([1.0, 1.0])):
        for cls in (Dispatching, Inheriting):
            with pytest.raises(NotImplementedError, match=f"{cls.__name__}: norch calls __torch_function__ of a"):
                make(cls)
        assert type(make(Disabled) * 2) is Disabled
        assert (make(Disabled) * 2).tolist() == [2.0, 2.0]
    assert norch.Tensor._make_wrapper_subclass(Dispatching, (2, 3)).is_meta


def test_a_parameter_keeps_the_class() -> None:
    """It is of the subclass, has a mark, and is trained, moved, copied and saved as others."""
    layer = nn.Linear(3, 1, bias=False)
    layer.weight = nn.Parameter(norch.full((1, 3), 0.5).as_subclass(Kept))  # type: ignore[assignment]
    assert isinstance(layer.weight, nn.Parameter)
    assert isinstance(layer.weight, Kept)
    assert list(dict(layer.named_parameters())) == ["weight"]
    norch.optim.SGD(layer.parameters(), lr=1.0).step(lambda: layer(norch.ones(1, 3)).sum().backward())
    assert type(layer.weight) is Kept
    assert layer.weight.tolist() == [[-0.5, -0.5, -0.5]]
    layer.double()
    copied = copy.deepcopy(layer)
    for weight in (layer.weight, copied.weight):
        assert (type(weight), weight.dtype, weight.requires_grad) == (Kept, norch.float64, True)
        assert isinstance(weight, nn.Parameter)
    assert repr(layer.weight).startswith("Parameter(Kept([[-0.5000")
    assert type(layer.state_dict()["weight"]) is Kept
    plain = nn.Linear(3, 1, bias=False)
    plain.load_state_dict(layer.state_dict())
    assert type(plain.weight) is nn.Parameter
    plain.load_state_dict(layer.state_dict(), assign=True)
    assert type(plain.weight) is Kept

    class Own(nn.Parameter):
        pass

    assert type(Own(norch.ones(1))) is Own
    for x in (layer.weight, nn.Parameter(norch.ones(1)), norch.ones(1)):
        assert not isinstance(x, Own)
    assert not isinstance(norch.ones(1), nn.Parameter)

    class Plain(norch.Tensor):
        def detach(self) -> Any:
            return super().detach().as_subclass(norch.Tensor)

    with pytest.raises(RuntimeError, match=r"detach\(\) of Plain must give the same class, not Tensor"):
        nn.Parameter(norch.ones(1).as_subclass(Plain))


def test_a_repr_with_other_contents() -> None:
    x = norch.ones(2, requires_grad=True)
    assert x.__repr__(tensor_contents="abc") == "tensor(abc, requires_grad=True)"
    assert Kept([1.0]).__repr__(tensor_contents="abc") == "Kept(abc)"
    assert nn.Parameter(x).__repr__(tensor_contents="a").endswith("tensor(a, requires_grad=True)")


@pytest.mark.parametrize("layer", ["ReLU", "Sigmoid", "Tanh", "Flatten", "GELU", "SiLU", "Identity", "Softplus"])
def test_results_of_layers_keep_the_class(layer: str) -> None:
    seen = []

    class Seen(norch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    assert type(getattr(norch.nn, layer)()(norch.ones(2, 3).as_subclass(Seen))) is Seen
    assert layer == "Identity" or layer.lower() in seen


def test_classes() -> None:
    class Below(Kept):
        pass

    class Apart(norch.Tensor):
        pass

    below, kept, apart = (norch.ones(2).as_subclass(kind) for kind in (Below, Kept, Apart))
    assert type(kept + below) is type(below + kept) is Below
    with pytest.raises(TypeError, match="no implementation found"):
        kept + apart
    with pytest.raises(TypeError, match="no implementation found for 'norch.add'"):
        norch.add(kept, apart)

    class Off(norch.Tensor):
        __torch_function__ = norch._C._disabled_torch_function_impl

    assert type(norch.ones(2).as_subclass(Off) + 1) is norch.Tensor

    class Own(norch.Tensor):
        def exp(self) -> Any:
            return "mine"

    assert norch.ones(2).as_subclass(Own).exp() == "mine"
    assert kept + "a" if False else pytest.raises(TypeError, lambda: kept + "a")


class Duck:
    """No tensor; answers with what it was asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, types, args, kwargs or {}


@pytest.mark.parametrize(
    ("call", "public"),
    [
        (lambda d: norch.add(d, 1), norch.add),
        (lambda d: norch.add(1, d), norch.add),
        (lambda d: norch.exp(d), norch.exp),
        (lambda d: norch.cat([d, d]), norch.cat),
        (lambda d: norch.stack((norch.ones(1), d)), norch.stack),
        (lambda d: norch.sum(d), norch.sum),
        (lambda d: norch.mean(d, dim=0), norch.mean),
        (lambda d: norch.matmul(norch.ones(1), d), norch.matmul),
        (lambda d: norch.where(norch.ones(1) > 0, d, 0), norch.where),
        (lambda d: norch.relu(d), norch.relu),
        (lambda d: norch.ones(1) + d, norch.Tensor.add),
        (lambda d: F.linear(d, norch.ones(1, 1)), F.linear),
        (lambda d: F.gelu(d), F.gelu),
        (lambda d: F.mse_loss(d, norch.ones(1)), F.mse_loss),
        (lambda d: F.cross_entropy(d, d), F.cross_entropy),
        (lambda d: F.conv2d(d, norch.ones(1, 1, 1, 1)), F.conv2d),
        (lambda d: F.max_pool2d(d, 2), F.max_pool2d),
        (lambda d: F.layer_norm(d, (1,)), F.layer_norm),
        (lambda d: F.dropout(d), F.dropout),
        (lambda d: F.softmax(d, 0), F.softmax),
        (lambda d: norch.linalg.norm(d), norch.linalg.norm),
        (lambda d: norch.flatten(d), norch.flatten),
        (lambda d: norch.reshape(d, (1,)), norch.reshape),
        (lambda d: norch.einsum("i->", d), norch.einsum),
        (lambda d: norch.zeros_like(d), norch.zeros_like),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_objects_that_are_no_tensors(call: Any, public: Any, first: bool) -> None:
    if not first:  # functions look for them once one has been met
        norch.exp(Duck())
    func, types, args, kwargs = call(Duck())
    assert func is public
    assert types == (Duck,)
    assert any(isinstance(x, Duck) for x in overrides_in(args))


NOTICED = """
import norch, inspect
from norch._package import override
override._begun = True  # so that no function looks for them first
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func
wrong = []
for module in (norch, norch.nn.functional, norch.linalg, norch.special, norch.fft):
    for name in dir(module):
        function = getattr(module, name, None)
        if name[0] == "_" or not hasattr(function, "__code__") or name in override.IGNORED | {"to_dlpack"}:
            continue
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if not needed or needed[0].name not in ("input", "x", "a", "A", "self", "tensor") or needed[0].kind == 2:
            continue
        given = [Duck() if p is needed[0] or "Tensor" in str(p.annotation) else 0.5 for p in needed if p.kind != 2]
        found = function(*given, **({"min": 1} if name.strip("_") in ("clamp", "clip") else {}))
        if found is not function and getattr(norch.Tensor, getattr(found, "__name__", ""), None) is not found:
            wrong.append(f"{module.__name__}.{name}")
print(wrong)
"""


def test_every_function_notices_objects_that_are_no_tensors() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NOTICED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_functions_are_not_methods() -> None:
    """So that an override, or a program that keys its functions, can tell norch.unbind from Tensor.unbind."""
    for module in (norch, F, norch.linalg, norch.special, norch.fft):
        for name in dir(norch.Tensor):
            method = getattr(norch.Tensor, name, None)
            if callable(method) and name[0] != "_" and (module is norch or name in module.__all__):
                assert getattr(module, name, None) is not method, (module, name)
    assert norch.relu_ is norch.relu_
    log: list[Any] = []
    x = norch.ones(2).as_subclass(logging(norch, log))
    norch.unbind(x), x.unbind(), norch.unbind(norch.ones(2).as_subclass(type(x)))
    assert [function for function, *_ in log] == [norch.unbind, norch.Tensor.unbind, norch.unbind]


def test_einsum_passes_its_operands_one_by_one() -> None:
    norch.exp(Duck())
    assert [type(x) for x in norch.einsum("i,i->", [Duck(), Duck()])[2]] == [str, Duck, Duck]


def overrides_in(args: Any) -> Any:
    return [x for one in args for x in (one if isinstance(one, (list, tuple)) else [one])]


def test_modes() -> None:
    log: list[str] = []

    class Mode(overrides.TorchFunctionMode):
        def __init__(self, name: str):
            self.name = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(f"{self.name} {func.__name__}")
            return func(*args, **(kwargs or {}))

    x = norch.ones(2)
    with Mode("outer"):
        y = x.exp() + 1
        with Mode("inner"):
            norch.zeros(2)
        with overrides.DisableTorchFunctionSubclass():
            x * 2
        with overrides.DisableTorchFunction():
            x / 2
        other = threading.Thread(target=lambda: x.sin())
        other.start()
        other.join()
    x - 1
    assert log == ["outer exp", "outer add", "inner zeros", "outer zeros", "outer mul"]
    assert y.tolist() == (norch.ones(2).exp() + 1).tolist()
    with pytest.raises(NotImplementedError), overrides.TorchFunctionMode():
        x + 1


def test_recordings() -> None:
    x = norch.ones(2).as_subclass(Kept)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    compiled, image = norch.compile(net), norch.randn(1, 1, 4, 4)
    for _ in range(3):
        assert norch.allclose(compiled(image), net(image))
    assert type(x.relu()) is Kept


def test_disabled() -> None:
    x = norch.ones(2).as_subclass(Kept)
    with norch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is norch.Tensor
        assert not overrides.has_torch_function((x,))
    assert type(x + 1) is Kept


def test_functions_of_ones_own() -> None:
    def scaled(x: Any, by: Any = 2) -> Any:
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(scaled, (x,), x, by=by)
        return x * by

    func, types, args, kwargs = scaled(Duck(), by=3)
    assert (func, types, kwargs) == (scaled, (Duck,), {"by": 3})
    assert type(scaled(norch.ones(2).as_subclass(Kept))) is Kept
    assert type(scaled(norch.ones(2))) is norch.Tensor
    wrapped = overrides.wrap_torch_function(lambda x: (x,))(lambda x: x)
    assert wrapped(Duck())[0] is wrapped
    assert wrapped(3) == 3
    assert overrides.has_torch_function_variadic(norch.ones(1), Duck())
    assert not overrides.has_torch_function([norch.ones(1), nn.Parameter(norch.ones(1)), 3])
    assert overrides.is_tensor_like(Duck())
    assert not overrides.is_tensor_like(3)
    assert norch.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()
    assert overrides.is_tensor_method_or_property(norch.Tensor.shape.__get__)
    assert norch.add in overrides.get_overridable_functions()[norch]
    assert {norch.manual_seed, F.has_torch_function_unary} <= overrides.get_ignored_functions()
    assert norch._package.override._on.get(id(F.has_torch_function_unary)) is None  # type: ignore[attr-defined]


def test_autocast_and_overrides() -> None:
    x = norch.ones(2, 2).as_subclass(Kept)
    with norch.autocast("cpu"):
        y = norch.matmul(x, x)
        assert (type(y), y.dtype) == (Kept, norch.bfloat16)
        assert norch.matmul(norch.ones(2, 2), norch.ones(2, 2)).dtype is norch.bfloat16
    assert norch.matmul(x, x).dtype is norch.float32


def test_tensors_of_pytorch_beside_norch_are_refused_or_read_as_arrays() -> None:
    torch = torch_or_skip()
    x, y = torch.ones(2), norch.ones(2)
    norch.ones(2).as_subclass(type("Other", (norch.Tensor,), {}))  # functions look for overrides from now on
    F, T = norch.nn.functional, torch.nn.functional
    for call in (
        lambda: F.linear(x, x), lambda: norch.fft.fft(x), lambda: norch.cat([x, x]), lambda: torch.relu(y),
        lambda: torch.add(x, y), lambda: torch.cat([x, y]), lambda: T.linear(y, x), lambda: T.softmax(y, 0),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    for result in (x + y, y + x, x * y, x @ y, y.add(x)):
        assert type(result) is norch.Tensor


def test_files() -> None:
    file = io.BytesIO()
    norch.save(norch.ones(2).as_subclass(Kept), file)
    file.seek(0)
    assert type(norch.load(file, weights_only=False)) is Kept


def test_warnings_cite_the_line_of_the_user_also_where_functions_begin_with_an_entry() -> None:
    class Noted(norch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(function, types, args, kwargs or {})

    norch.ones(2).as_subclass(Noted) + 1  # from here on functions look for overrides
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only") as noted:
        norch.from_numpy(array)
    with pytest.warns(UserWarning, match="indexing") as others:
        norch.meshgrid(norch.ones(2), norch.ones(3))
    assert noted[0].filename == others[0].filename == __file__


def test_a_subclass_may_define_requires_grad_(torch: Any) -> None:
    """One that needs what __init__ sets: the constructors of Tensor do not call it (pina's LabelTensor)."""
    for lib in (norch, torch):

        class Labelled(lib.Tensor):
            @staticmethod
            def __new__(cls: Any, x: Any, label: str) -> Any:
                return super().__new__(cls, x)

            def __init__(self, x: Any, label: str) -> None:
                super().__init__()
                self.label = label

            def requires_grad_(self, mode: bool = True) -> Any:
                found = super().requires_grad_(mode)
                found.label = self.label + "+"
                return found

        x = Labelled(lib.ones(2), "a")
        assert (x.label, x.requires_grad_().label, x.requires_grad) == ("a", "a+", True)
        assert lib.Tensor._make_subclass(Labelled, lib.ones(2), True).requires_grad


@pytest.mark.parametrize("take", [lambda x: x.as_subclass(Kept), Kept, norch.Tensor])
def test_a_tensor_of_another_is_a_view_of_it(take: Any) -> None:
    w = norch.ones(2, requires_grad=True)
    for x in (w, w * 1, (w * 1)[:2]):
        assert norch.autograd.grad(take(x * 2).sum(), w)[0].tolist() == [2, 2]
        assert take(x).requires_grad and take(x).grad_fn is not None
    product = w * 1
    take(product).mul_(3)
    assert norch.autograd.grad(product.sum(), w)[0].tolist() == [3, 3]
    plain = norch.zeros(2)
    take(plain).add_(w)
    assert plain.requires_grad and plain.tolist() == [1, 1]
    assert take(norch.ones(2, dtype=norch.int64)).dtype is norch.int64


def test_a_tensor_of_another_may_require_a_gradient() -> None:
    for cls in (norch.Tensor, Kept):
        x = cls(norch.ones(2), requires_grad=True)
        x.sum().backward()
        assert x.requires_grad and x.grad.tolist() == [1, 1] and not cls(norch.ones(2)).requires_grad


def test_methods_of_a_subclass_call_those_of_super(torch: Any) -> None:
    """What super() gives has the class, as pina's LabelTensor expects, of methods and of operators."""
    for lib in (norch, torch):
        with lib.overrides.BaseTorchFunctionMode():
            lib.ones(1).exp()
        names = "__getitem__ clone sum to reshape unsqueeze __add__ exp".split()

        class Labelled(lib.Tensor):
            label = "a"

        for name in names:

            def method(self: Any, *arguments: Any, name: str = name, cls: Any = Labelled) -> Any:
                found = getattr(super(cls, self), name)(*arguments)
                found.seen = [*found.__dict__.get("seen", ()), name]
                return found

            setattr(Labelled, name, method)
        x = lib.ones(2, 3).as_subclass(Labelled)
        with lib.overrides.BaseTorchFunctionMode():  # after which those methods go on looking
            lib.ones(1).exp()
        found = [x[0], x.clone(), x.sum(0), x.to(lib.float64), x.reshape(6), x.unsqueeze(0), x + 1, x.exp()]
        assert [(type(one), one.label, one.seen) for one in found] == [(Labelled, "a", [name]) for name in names]


DERIVATIVES = {
    "mul": lambda lib, x, y: x * y,
    "pow": lambda lib, x, y: x**y,
    "matmul": lambda lib, x, y: x @ y,
    "view": lambda lib, x, y: x.T[1:] * y[1],
    "in place": lambda lib, x, y: (x * 1).mul_(y).exp_(),
    "max": lambda lib, x, y: x.max(1).values * y.min(),
    "gather": lambda lib, x, y: x.gather(1, lib.zeros(3, 1, dtype=lib.int64)) * y,
    "cumprod": lambda lib, x, y: x.cumsum(0) * y.cumprod(1),
    "inv": lambda lib, x, y: lib.linalg.inv(x + 5 * lib.eye(3)) * y,
    "gelu": lambda lib, x, y: lib.nn.functional.gelu(x) * y.softmax(1),
    "stack": lambda lib, x, y: lib.stack([x, y]).permute(2, 0, 1),
}


@pytest.mark.parametrize("name, hooked", [*((name, False) for name in DERIVATIVES), ("mul", True), ("matmul", True)])
def test_derivatives_call_no_overrides(torch: Any, name: str, hooked: bool) -> None:
    """grad() and backward() are overridden as a whole; gradients in .grad are plain."""
    said = []
    for lib in (norch, torch):
        log: list[Any] = []
        Logged = logging(lib, log)
        x, y = (lib.arange(1.0, 10).reshape(3, 3).div(k).as_subclass(Logged).requires_grad_() for k in (7, 8))
        out = DERIVATIVES[name](lib, x, y)
        if hooked:
            out.register_hook(lambda g, ones=lib.ones_like: ones(g))
        weights = lib.ones(out.shape).as_subclass(Logged)
        log.clear()
        found = lib.autograd.grad(out, (x, y), weights, create_graph=True)
        with overrides.DisableTorchFunctionSubclass() if lib is norch else lib._C.DisableTorchFunctionSubclass():
            seen = [func for _, func, _ in log if func not in ("ones_like", "register_hook")]
            second = sum((g * g).sum() for g in found) + out.sum()
        log.clear()
        second.backward()
        after = [func for _, func, _ in log]
        said.append((seen, [type(g) is Logged for g in found], after, type(x.grad) is lib.Tensor, x.grad.tolist()))
    (*ours, a), (*theirs, b) = said
    assert ours == theirs
    np.testing.assert_allclose(a, b, rtol=1e-4)
