"""The border: what norch.h says, what Python reads from it, and calls that do not go through Tensor."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import norch
from norch._binding import buffers as _buffers
from norch._binding import library as _lib
from norch._binding import numbers as _numbers
from norch._binding.library import lib
from norch.ops._rows import OPCODES
from norch.optim.fused import ROWS

HEADER = lib.norch_header().decode()


def test_every_function_of_the_header_is_bound():
    names = set(re.findall(r"\b(norch_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)))
    builtins = {name for name, call in vars(lib).items() if type(call) is type(len)}
    python = Path(__file__).resolve().parents[2] / "csrc" / "python"
    sources = "".join(path.read_text() for path in python.rglob("*.c"))
    by_hand = {"norch_" + name for name in re.findall(r"^NR_BUILTIN\((\w+)\)", sources, re.M)}
    assert names | by_hand == set(vars(lib)) and len(names) > 50
    assert len(builtins) > 50
    for name in names - builtins:
        assert getattr(lib, name).argtypes is not None


def test_calls_with_tensors_are_builtins():
    text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    with_tensors = set(re.findall(r"^norch_tensor \*(\w+)\(", text, re.M))
    with_tensors |= set(re.findall(r"\b(norch_\w+)\((?=[^)]*norch_tensor \*)", text))
    through_ctypes = {name for name in with_tensors if type(getattr(lib, name)) is not type(len)}
    assert through_ctypes == {"norch_from_memory", "norch_from_bytes", "norch_release", "norch_to_bytes"}


def adam_step_of(x, *states):
    row = ROWS["adam"]
    lib.norch_optim_step(row.kind, ([x], [x], *states, None), _buffers.address(row.hyper()))


def test_rows_of_optimizers_have_named_hyper_parameters():
    hyper = ROWS["adam"].hyper(lr=0.5, step=3)
    assert (hyper.lr, hyper.beta1, hyper.step) == (0.5, 0, 3)
    assert lib.norch_optim_state(ROWS["adam"].kind) == b"exp_avg, exp_avg_sq, max_exp_avg_sq"
    assert lib.norch_optim_name(len(ROWS)) is lib.norch_optim_hyper(-1) is None
    with pytest.raises(AttributeError):
        hyper.rate = 1.0


def test_builtins_check_what_they_get():
    x = norch.zeros(2, 3)
    calls = [
        (TypeError, "unary: takes 2 arguments, not 1", lambda: lib.norch_unary(0)),
        (TypeError, "neg: expected a tensor, not int", lambda: lib.norch_unary(0, 0)),
        (
            TypeError,
            "add: expected a tensor, not NoneType",
            lambda: lib.norch_binary(OPCODES["add"], x, None),
        ),
        (TypeError, "select: expected an integer, not str", lambda: lib.norch_select(x, "a", 0)),
        (OverflowError, "does not fit 64 bits", lambda: lib.norch_select(x, 2**63, 0)),
        (TypeError, "view: expected a sequence of integers, not int", lambda: lib.norch_view(x, 3)),
        (TypeError, "view: expected an integer, not float", lambda: lib.norch_view(x, (1.5,))),
        (norch.ShapeError, "view: 17 dimensions", lambda: lib.norch_view(x, (1,) * 17)),
        (TypeError, "full: expected a number, not str", lambda: lib.norch_full((2,), 4, "a", 0, (0, 0))),
        (TypeError, "cat: expected a tensor, not int", lambda: lib.norch_cat([x, 3], 0)),
        (TypeError, "cat: expected a sequence of tensors, not int", lambda: lib.norch_cat(3, 0)),
        (norch.ArgumentError, "1 tensors beside 2", lambda: lib.norch_optim_step(0, ([x, x], [x], *[None] * 3), 0)),
        (TypeError, "a tuple of sequences", lambda: lib.norch_optim_step(0, ([x], [x]), 0)),
        (norch.ArgumentError, "adam: exp_avg_sq is missing", lambda: adam_step_of(x, [x], None)),
        (norch.ShapeError, "adam: exp_avg_sq 0 has shape (3, 2)", lambda: adam_step_of(x, [x], [x.t()])),
        (norch.ArgumentError, "there is no optimizer 99", lambda: lib.norch_optim_step(99, ([], [], *[None] * 3), 0)),
        (TypeError, "adopt: expected a class of tensors", lambda: lib.norch_adopt(int, x)),
        (TypeError, "refusal: takes 1 arguments, not 0", lambda: lib.norch_refusal()),
        (TypeError, "replay: takes 2 arguments, not 1", lambda: lib.norch_replay(None)),
        (TypeError, "program_memory: takes 1 arguments, not 2", lambda: lib.norch_program_memory(None, 1)),
        (TypeError, "result_of: expected a recording", lambda: lib.norch_result_of(None, 0)),
    ]
    for error, message, call in calls:
        with pytest.raises(error, match=re.escape(message)):
            call()
    with pytest.raises(TypeError):
        _lib.TensorBase()
    for call in vars(lib).values():
        if type(call) is type(len):
            with contextlib.suppress(TypeError):
                call(*[None] * 9)  # no SystemError: that would be a failure without an exception


def test_only_the_border_is_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", _lib._PATH], capture_output=True, text=True)
    if names.returncode:
        pytest.skip("needs nm")
    exported = {line.split()[-1] for line in names.stdout.splitlines()}
    assert {name for name in exported if not name.startswith("norch_")} <= {
        "_init",
        "_fini",
        "_edata",
        "_end",
        "__bss_start",
    }


def test_the_struct():
    assert lib.norch_sizeof_tensor() == ctypes.sizeof(_lib.TensorStruct)
    x = norch.zeros(2, 3, dtype=norch.float64)[1:, ::2]
    header = _lib.TensorStruct.from_address(id(x))
    assert (header.ndim, header.numel, header.offset) == (2, 2, 3)
    assert list(header.shape[:2]) == [1, 2] and list(header.strides[:2]) == [3, 2]
    assert header.dtype == norch.float64.code and header.data == x.data_ptr()


def test_constants():
    assert _lib.constants["MAX_DIMS"] >= 8
    names = ["bool", "uint8", "int32", "int64", "float32", "float64", "int8", "int16", "float16", "bfloat16"]
    names += ["complex64", "complex128"]
    assert [norch.dtype(i).name for i in range(12)] == names
    assert lib.norch_dtype_name(12) is None and lib.norch_dtype_name(-1 & (2**64 - 1)) is None
    assert lib.norch_abi() != 0
    assert lib.norch_isa().decode() in lib.norch_isa_builds().decode().split()


def test_the_table_of_operations():
    names = []
    while (name := lib.norch_op_name(len(names))) is not None:
        names.append(name.decode())
        assert lib.norch_op_form(len(names) - 1).decode() in ("unary", "binary", "choice", "ternary", "reduce")
    assert len(set(names)) == len(names) > 50
    assert lib.norch_op_form(len(names)) is None
    assert lib.norch_op_name(2**62) is None and lib.norch_op_name(2**64 - 1) is None


def test_bad_calls_fail_and_do_not_crash():
    x, y = norch.zeros(2, 3), norch.zeros(4)
    like = norch._tensor.handle.meta_of(x)  # a shape over no memory
    calls = [
        lambda: lib.norch_empty((2, -3), 4, (0, 0)),
        lambda: lib.norch_empty((2, 3), 99, (0, 0)),
        lambda: lib.norch_empty((2, 3), -1, (0, 0)),
        lambda: lib.norch_empty((2, 3), 4, (7, 0)),
        lambda: lib.norch_empty((2, 3), 4, (0, 1)),
        lambda: lib.norch_empty((2, 3), 4, (-1, 0)),
        lambda: lib.norch_full((2, 3), 99, 0.0, 0, (0, 0)),
        lambda: lib.norch_full_like(x, 99, 0.0, 0),
        lambda: lib.norch_arange(-1, 4, 0.0, 1.0, 0, 1),
        lambda: lib.norch_arange(5, 99, 0.0, 1.0, 0, 1),
        lambda: lib.norch_unary(2**40, x),
        lambda: lib.norch_unary(-1, x),
        lambda: lib.norch_binary(2**40, x, x),
        lambda: lib.norch_binary(0, x, y),
        lambda: lib.norch_reduce(2**40, x, None, False, -1, 0.0),
        lambda: lib.norch_reduce(0, x, None, False, -1, 0.0),  # row 0 is no reduction
        lambda: lib.norch_view(x, (7,)),
        lambda: lib.norch_permute(x, (0, 0)),
        lambda: lib.norch_permute(x, (0, 1, 2)),
        lambda: lib.norch_slice(x, 5, 0, 1, 1),
        lambda: lib.norch_slice(x, 0, 0, 1, 0),
        lambda: lib.norch_cast(x, 99),
        lambda: lib.norch_cast(x, -1),
        lambda: lib.norch_cat([], 0),
        lambda: lib.norch_stack([], 0),
        lambda: lib.norch_pad(x, (1,), (), 0, like),
        lambda: lib.norch_pad(x, (1, 1, 1), (1, 1, 1), 0, lib.norch_scalar_float(0.0)),
        lambda: lib.norch_pad(x, (1,), (1,), 4, lib.norch_scalar_float(0.0)),
        lambda: lib.norch_pad(x, (-1,), (1,), 0, lib.norch_scalar_float(0.0)),
        lambda: lib.norch_pad(x, (3,), (0,), 1, lib.norch_scalar_float(0.0)),  # mirrors at most size - 1
        lambda: lib.norch_pad(x, (0,), (4,), 3, lib.norch_scalar_float(0.0)),
        lambda: lib.norch_pad(x, (2**62,), (2**62,), 0, lib.norch_scalar_float(0.0)),
        lambda: lib.norch_from_bytes(b"abc", 3, 2, _numbers.ints((2, 3)), 4),
        lambda: lib.norch_expand_as(x, y),
        lambda: lib.norch_reshape_as(x, y),
        lambda: lib.norch_unary(0, like),
    ]
    start = lib.norch_live_storages()
    for call in calls:
        with pytest.raises((norch.Error, IndexError)):
            call()
    assert lib.norch_live_storages() == start


def test_ints_are_checked():
    assert _numbers.ints((1, -2)) == (1).to_bytes(8, "little") + (2**64 - 2).to_bytes(8, "little")
    with pytest.raises(OverflowError):
        _numbers.ints((2**63,))
    with pytest.raises(TypeError):
        _numbers.ints((1.5,))
    with pytest.raises(norch.ShapeError):
        _numbers.ints((1,) * 17)
    with pytest.raises(TypeError, match="not bool"):
        _numbers.int64(True)
    for bad in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError):
            _numbers.int64(bad)


def test_the_memory_of_a_tensor_is_all_of_its_bytes():
    x = norch.tensor([1.0, 2.0])
    memory = _buffers.memory_of(x)
    assert bytes(memory) == x.numpy().tobytes()
    memory[4:8] = memory[:4]
    assert x.tolist() == [1.0, 1.0]


def test_counts_of_allocations():
    lib.norch_fail_allocation(-1)
    x = norch.zeros(10)
    count = lib.norch_fail_allocation(-1)
    assert count >= 2
    del x
    lib.norch_fail_allocation(0)
    with pytest.raises(MemoryError):
        norch.zeros(10)
    norch.zeros(10)
    lib.norch_fail_allocation(-1)


def python(program, **env):
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)), **env)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd="/")


def test_forced_instruction_sets():
    for isa in lib.norch_isa_builds().decode().split():
        done = python(
            "import norch; print(norch._binding.library.lib.norch_isa().decode(), norch.ones(9).sum().item())",
            NORCH_ISA=isa,
        )
        assert done.stdout == f"{isa} 9.0\n", done.stderr
    program = "import norch; print(norch._binding.library.lib.norch_isa().decode())"
    unset = python("import os; os.environ.pop('NORCH_ISA', None); " + program).stdout
    assert python(program, NORCH_ISA="").stdout == unset == lib.norch_isa_builds().decode().split()[-1] + "\n"
    done = python("import norch", NORCH_ISA="neon512")
    assert done.returncode and "ImportError" in done.stderr and "neon512" in done.stderr


def test_a_missing_or_broken_library(tmp_path):
    done = python("import norch", NORCH_LIBRARY=str(tmp_path / "none.so"))
    assert "ImportError" in done.stderr and "make" in done.stderr
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    done = python("import norch", NORCH_LIBRARY=str(broken))
    assert "ImportError" in done.stderr and "cannot be loaded" in done.stderr
    done = python("import norch", NORCH_LIBRARY="libm.so.6")
    assert "ImportError: norch: libm.so.6 is a library, but not norch's" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("sys.abiflags = 't'", "runs without a global lock (free-threaded)"),
        ("sys._is_gil_enabled = lambda: False", "runs without a global lock (free-threaded)"),
        ("sys.abiflags = 'd'", "is a debug build of Python"),
        ("sys.gettotalrefcount = lambda: 0", "is a debug build of Python"),
    ],
)
def test_other_builds_of_python_are_refused_in_one_sentence(change, said):
    done = python(f"import sys\nimport ctypes, re\n{change}\nimport norch", NORCH_LIBRARY="/none.so")
    assert done.returncode == 1 and not done.stdout
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError: norch: ") and said in message


def test_import_needs_no_numpy_and_prints_nothing():
    program = """
import sys
sys.modules["numpy"] = None
import norch
x = norch.tensor([[1.0, 2.0]], requires_grad=True)
y = (x * 2 + 1).sum()
y.backward()
assert x.grad.tolist() == [[2.0, 2.0]]
repr(x), norch.arange(3), norch.rand(2).tolist(), norch.nn.Linear(2, 1)(x)
"""
    done = python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_public_names():
    assert norch.__version__
    for name in (
        "Tensor",
        "tensor",
        "nn",
        "optim",
        "utils",
        "autograd",
        "no_grad",
        "float32",
        "Size",
        "device",
        "cuda",
    ):
        assert hasattr(norch, name)


def test_what_a_program_may_do_without_is_imported_when_asked_for():
    program = """
import gc, sys
import norch
assert gc.isenabled()
later = {"nn", "optim", "func", "linalg", "cuda", "utils", "testing", "autograd.functional"}
loaded = [name for name in later if "norch." + name in sys.modules]
assert not loaded, loaded
assert later - {"autograd.functional"} <= set(dir(norch)) and norch.celu(norch.zeros(1)).tolist() == [0.0]
assert norch.optim.SGD and norch.utils.data.DataLoader and norch.autograd.functional.jacobian and norch.nn.Linear
gc.disable()
del sys.modules["norch._binding.start"]
import norch._binding.start
assert not gc.isenabled()
"""
    done = python(program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(True),
        lambda x: x.max(True),
        lambda x: x.softmax(True),
        lambda x: x.cumsum(False),
        lambda x: norch.cat([x, x], False),
        lambda x: x.topk(True),
        lambda x: x.view(True, 6),
        lambda x: x.mean((True,)),
        lambda x: x.select(False, 0),
        lambda x: norch.zeros(True, 2),
        lambda x: norch.eye(True),
        lambda x: norch.nn.Embedding(True, 2),
        lambda x: norch.set_num_threads(True),
    ],
)
def test_a_truth_is_no_integer(call):
    with pytest.raises(TypeError, match="integer"):
        call(norch.ones(2, 3))
    assert norch.full((2,), True).tolist() == [True, True] and (norch.ones(2) + True).tolist() == [2, 2]


def test_the_library_serves_one_import():
    done = python("""
import sys
import norch
x = norch.ones(2)
kept = {name: module for name, module in sys.modules.items() if name.startswith("norch")}
for name in kept:
    del sys.modules[name]
try:
    import norch
except ImportError as error:
    assert "one import" in str(error)
else:
    raise AssertionError("imported twice")
sys.modules.update(kept)
assert (x + 1).tolist() == [2, 2]
""")
    assert (done.returncode, done.stderr) == (0, "")
