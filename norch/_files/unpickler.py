"""Unpicklers of files with tensors: a restricted one, which makes only tensors, numbers, strings and containers, and
one for trusted files.

Time and memory of the restricted one are bounded by the size of the file: each call, and each key of a dict or set, is
checked before it is executed. Python hashes a tuple or an integer anew each time, and compares a key with all that have
its hash, which a file may choose: each hash and each comparison counts as work.
"""

from __future__ import annotations

import codecs
import os
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

from .._tensor.size import Size
from ..device import device as Device
from ..dtype import BY_NAME, dtype_named
from ..dtype import dtype as DType
from ..storage import Storage, restored, without_bytes
from ..tensor import Tensor, rebuilt, rebuilt_compressed, rebuilt_sparse
from .placement import Chosen, placed
from .source import Source

# The names that a file may use: none of them does more than to hold its arguments.
SAFE = {
    "_codecs": "encode",  # what bytes are written as for Python 2
    "builtins": "bool bytearray bytes complex dict float frozenset int list range set slice str tuple",
    "collections": "Counter OrderedDict defaultdict",
    "norch._tensor.size": "Size",
    "norch.device": "device",
    "norch.dtype": "dtype_named",
    "norch.nn.parameter": "Parameter",
    "norch.storage": "restored without_bytes",
    "norch.tensor": "Size Tensor rebuilt rebuilt_compressed rebuilt_sparse",
}

# What of it a file may call, and with what: as pickle writes it.
FLAT = (int, float, str, bytes, type(None))
CALLS: dict[Any, tuple[Any, ...]] = {
    codecs.encode: (str, str),
    bytes: (),
    bytearray: ((bytes, str), str),
    dict: (dict,),  # the parameters and submodules of a module
    complex: (float, float),
    range: (int, int, int),
    slice: (FLAT, FLAT, FLAT),
    set: (list,),
    frozenset: (list,),
    Counter: (dict,),
    OrderedDict: (list,),  # of pairs, as Python 2 writes it
    defaultdict: (object,),
    Size: (tuple,),
    Device: (str, int),
    dtype_named: (str,),
    restored: ((bytes, bytearray),),
    without_bytes: (int,),
    rebuilt: (Storage, DType, tuple, tuple, int, type, bool),
    rebuilt_sparse: (Tensor, Tensor, tuple, bool, bool),
    rebuilt_compressed: (Tensor, Tensor, Tensor, tuple, int, bool),
}
# Other names of it, beside dtypes: those of older files, and those that norch.as_torch() gives.
OTHER_NAMES = {
    "norch._handle.Size": ("norch._tensor.size", "Size"),
    "norch._size.Size": ("norch._tensor.size", "Size"),
    "torch.Size": ("norch._tensor.size", "Size"),
    "torch.Tensor": ("norch.tensor", "Tensor"),
    "torch.device": ("norch.device", "device"),
    "torch.nn.parameter.Parameter": ("norch.nn.parameter", "Parameter"),
}
ALLOWED: dict[str, Any] = {}  # "module.name": what add_safe_globals() lets files name, call and set attributes of
_BUILD: Callable[[Any], None] = pickle._Unpickler.dispatch[pickle.BUILD[0]]
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
ENCODINGS = ((), ("latin1",), ("latin-1",))

FREE = 1 << 20  # elements that any file may have copied or hashed; then so many for each of its bytes:
FOR_A_BYTE = 8
DEEPEST = 100  # tuples in tuples of a key
LONGEST_NUMBER = 4300  # characters of a number that is written out; reading one takes time in the square of its length
WORD = 64  # bits of an integer, or characters, that are one element of work
SECRET = int.from_bytes(os.urandom(7), "little")
OWN_HASH = (1 << 61) - 1  # integers below have each a hash of its own, and no number shares its hash with many floats


class Refusal(pickle.UnpicklingError):
    """A file asks for an operation that is refused."""


def shown(x: Any) -> str:
    """An object of a file for a message. Its repr() may have any length: lists in lists can be short in a file, and
    have 2 to the 1000 elements.
    """
    if isinstance(x, (str, bytes)):
        return repr(x if len(x) <= 100 else x[:100])
    if isinstance(x, (bool, float, type(None))) or (isinstance(x, int) and x.bit_length() <= WORD):
        return repr(x)
    return f"a {type(x).__name__}"


class TrustingUnpickler(pickle.Unpickler):
    def __init__(self, file: Source, where: Device | Chosen | None, storages: list[Storage]):
        super().__init__(file)
        self.where, self.storages = where, storages

    def find_class(self, module: str, name: str) -> Any:
        module, name = OTHER_NAMES.get(f"{module}.{name}", (module, name))
        if module.partition(".")[0] == "torch":  # as norch.as_torch() has named norch's classes
            module = "norch" + module[5:]
            found = BY_NAME.get(name) or getattr(import_module(module), name)
        else:
            found = super().find_class(module, name)
        where = self.where
        # Not of self: the memo has the function, and CPython 3.11.2 never collects that cycle.
        return (lambda data: placed(where, restored(data))) if found is restored else found

    def persistent_load(self, pid: Any) -> Storage:
        return _numbered(self.storages, pid)


class RestrictedUnpickler(pickle._Unpickler):  # that in Python, as the one in C sets attributes of anything
    calls: Any = CALLS  # a dict as that
    trusting = False
    proto = 0
    dispatch: ClassVar[dict[int, Any]]
    stack: list[Any]  # since the last mark
    metastack: list[list[Any]]  # the stacks before it

    def __init__(self, file: Source, where: Device | Chosen | None, storages: list[Storage]):
        super().__init__(file)
        self.source, self.where, self.storages = file, where, storages
        self.work = 0
        self.hashes: dict[int, tuple[Any, dict[int, int]]] = {}  # of a container: how many keys have a hash

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:  # which torch.save takes: builtins and the like have the names of Python 2 there
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        if (path := f"{module}.{name}") in ALLOWED:
            return ALLOWED[path]
        if module == "torch" and name in BY_NAME:
            return BY_NAME[name]
        module, name = OTHER_NAMES.get(path, (module, name))
        if name not in SAFE.get(module, "").split():
            raise Refusal(
                f"load: the file names {path}, which is no tensor, number, string or container; if you trust it, name "
                "it in norch.serialization.add_safe_globals(), or if you trust the file, pass weights_only=False"
            )
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Storage:
        """A storage of the file, by its number."""
        return _numbered(self.storages, pid)

    def build(self) -> None:
        """Sets attributes of a tensor, and _metadata of a state dict; refused for anything else, such as a class."""
        holder, attributes = self.stack[-2:]
        if type(holder) is Device and not hasattr(holder, "type"):  # as the first files hold devices
            holder.__init__(attributes[1]["type"], attributes[1]["index"])  # type: ignore[misc]
            self.stack.pop()
            return
        if any(type(holder) is each for each in ALLOWED.values()):
            _BUILD(self)
            return
        is_state_dict = type(holder) is OrderedDict and type(attributes) is dict and attributes.keys() <= {"_metadata"}
        if not is_state_dict and (not isinstance(holder, Tensor) or type(attributes) is not dict):
            raise Refusal(f"load: the file sets attributes of a {type(holder).__name__}")
        self.spend(len(attributes))
        holder.__dict__.update(self.stack.pop())

    def byte_array(self) -> None:
        """A bytearray of as many bytes as there are, not of as many as the file says."""
        self.stack.append(bytearray(self.read(struct.unpack("<Q", self.read(8))[0])))  # type: ignore[attr-defined]

    # ---- checks, each before an opcode is run -----------------------------------------------------------------------

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > FREE + FOR_A_BYTE * self.source.taken:
            raise Refusal("load: the file asks for more work than its size allows")

    def check_keys(self, holder: Any, keys: Iterable[Any]) -> None:
        """Counts the work to put keys into holder, a dict or set, or None for a new one."""
        work = 0
        counts: dict[int, int] | None = None
        for key in keys:
            kind = type(key)
            if kind is str or kind is bytes:  # hashed once, by a secret
                work += len(key) // WORD
            elif kind is not bool and kind is not float and not (kind is int and -OWN_HASH < key < OWN_HASH):
                size = self.size_of_key(key)
                if counts is None:
                    counts = {} if holder is None else self.hashes.setdefault(id(holder), (holder, {}))[1]
                hashed = hash(key) ^ SECRET
                counts[hashed] = count = counts.get(hashed, 0) + 1
                self.spend(size * count)  # it may be compared with each of them
        self.spend(work)

    def size_of_key(self, key: Any) -> int:
        """The elements of a key, each as often as it occurs. Python hashes tuples without a limit of depth."""
        size, level = 0, [key]
        for _ in range(DEEPEST + 1):
            elements, inner = 0, list[Any]()
            for part in level:
                if isinstance(part, (tuple, frozenset)):
                    elements += 1 + len(part)
                    inner.append(part)
                elif isinstance(part, (range, slice)):
                    elements += 4
                    inner.append((part.start, part.stop, part.step))
                elif isinstance(part, int):
                    elements += 1 + part.bit_length() // WORD
                else:
                    elements += 1 + (len(part) // WORD if isinstance(part, (str, bytes)) else 0)
            self.spend(elements)
            size += elements
            level = [part for each in inner for part in each]
            if not level:
                return size
        raise Refusal(f"load: the file has a key of more than {DEEPEST} tuples within each other")

    def check_call(self) -> None:
        function, arguments = self.stack[-2:]
        takes = self.calls.get(function) if callable(function) else None
        good = takes is not None and type(arguments) is tuple and len(arguments) <= len(takes)
        good = good and all(map(isinstance, arguments, takes or ()))
        good = good or (type(arguments) is tuple and any(function is each for each in ALLOWED.values()))
        if good and function in (codecs.encode, bytearray):
            good = arguments[1:] in ENCODINGS
        if good and function is OrderedDict and arguments:
            good = all(type(pair) in (list, tuple) and len(pair) == 2 for pair in arguments[0])
        if not good:
            called = (
                function.__name__
                if isinstance(function, (type, FunctionType, BuiltinFunctionType))
                else shown(function)
            )
            raise Refusal(f"load: the file calls {called} with arguments that nothing saved calls it with")
        self.spend(sum(len(each) for each in arguments if isinstance(each, SIZED)))
        if function in (set, frozenset, Counter) and arguments:
            self.check_keys(None, arguments[0])
        if function is OrderedDict and arguments:
            self.check_keys(None, [key for key, _ in arguments[0]])
        if function is range and any(number.bit_length() > WORD for number in arguments):  # it divides them
            raise Refusal(f"load: the file has a range with a number of more than {WORD} bits")
        if function is restored:
            self.stack[-2] = lambda data: placed(self.where, restored(data))

    def check_holder(self, holder: Any, kind: type) -> None:
        if not isinstance(holder, kind):
            raise Refusal(f"load: the file puts elements into a {type(holder).__name__}")

    def check_setitem(self) -> None:
        self.check_holder(self.stack[-3], dict)
        self.check_keys(self.stack[-3], self.stack[-2:-1])

    def check_setitems(self) -> None:
        self.check_holder(self.metastack[-1][-1], dict)
        self.check_keys(self.metastack[-1][-1], self.stack[::2])

    def check_additems(self) -> None:
        self.check_holder(self.metastack[-1][-1], set)
        self.check_keys(self.metastack[-1][-1], self.stack)

    def check_name(self) -> None:
        """Counts the work of looking up a name. A name that occurs once in the file may be looked up often."""
        self.spend(sum(len(part) // WORD for part in self.stack[-2:] if isinstance(part, str)))

    def refuse(self) -> None:
        raise Refusal("load: the file makes an object in a way in which no tensor, number or container is saved")


def _checked(opcode: bytes, check: Callable[[Any], None]) -> tuple[int, Callable[[Any], None]]:
    run = pickle._Unpickler.dispatch[opcode[0]]

    def checked(self: Any) -> None:
        if not self.trusting:
            check(self)
        run(self)

    return opcode[0], checked


def _written_out(opcode: bytes) -> tuple[int, Callable[[Any], None]]:
    """An opcode that a number follows, in decimal. Those of the memo are at most as large as the C unpickler's."""
    run, most = pickle._Unpickler.dispatch[opcode[0]], 10 if opcode in (pickle.PUT, pickle.GET) else LONGEST_NUMBER

    def checked(self: Any) -> None:
        whole, line = self.readline, self.readline()
        if len(line) > most + 1:
            raise Refusal(f"load: the file has a number of {len(line) - 1} characters; {most} is the limit here")
        self.readline = lambda: line
        try:
            run(self)
        finally:
            self.readline = whole

    return opcode[0], checked


RestrictedUnpickler.dispatch = {
    **pickle._Unpickler.dispatch,
    pickle.BUILD[0]: lambda self: self.build(),
    pickle.BYTEARRAY8[0]: RestrictedUnpickler.byte_array,
    **dict(
        _checked(opcode, check)
        for opcode, check in (
            (pickle.REDUCE, RestrictedUnpickler.check_call),
            (pickle.NEWOBJ, RestrictedUnpickler.check_call),
            (pickle.NEWOBJ_EX, RestrictedUnpickler.refuse),
            (pickle.INST, RestrictedUnpickler.refuse),
            (pickle.OBJ, RestrictedUnpickler.refuse),
            (pickle.APPEND, lambda self: self.check_holder(self.stack[-2], list)),
            (pickle.APPENDS, lambda self: self.check_holder(self.metastack[-1][-1], list)),
            (pickle.DICT, lambda self: self.check_keys(None, self.stack[::2])),
            (pickle.SETITEM, RestrictedUnpickler.check_setitem),
            (pickle.SETITEMS, RestrictedUnpickler.check_setitems),
            (pickle.ADDITEMS, RestrictedUnpickler.check_additems),
            (pickle.FROZENSET, lambda self: self.check_keys(None, self.stack)),
            (pickle.STACK_GLOBAL, RestrictedUnpickler.check_name),
        )
    ),
    **dict(map(_written_out, (pickle.INT, pickle.LONG, pickle.FLOAT, pickle.PUT, pickle.GET))),
}


def _numbered(storages: list[Storage], number: Any) -> Storage:
    if type(number) is not int or not 0 <= number < len(storages):
        raise ValueError(f"the file has no storage {shown(number)}")
    return storages[number]
