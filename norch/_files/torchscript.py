"""Reads the tensors of a TorchScript archive, a file of torch.jit.save, without running its code.

Such a file is a zip of `data.pkl`, in which a module is an instance of a class `__torch__.NAME` with its attributes,
`data/NUMBER`, `constants.pkl` with `constants/NUMBER`, and `code/`, the text of the classes, which tells parameters and
buffers from other tensors.
"""

from __future__ import annotations

import re
import zipfile
from collections import OrderedDict
from typing import Any, ClassVar

from ..device import device as Device
from ..tensor import Tensor
from .placement import Chosen
from .pytorch import Archive, Reader
from .unpickler import Refusal

NO_MODULE = ("no module",)
DEEPEST = 500  # modules in modules
# The text of a class may be compressed: it has at most so many bytes, and so many for each byte of the file.
FREE, FOR_A_BYTE = 1 << 20, 64
# Of a class: its name, whether it is a module, its lists of names.
CLASS = re.compile(r"^class (\w+)(\(Module\))?.*:\n((?:  __parameters__ = .*\n|  __buffers__ = .*\n)*)", re.MULTILINE)


class ScriptObject(dict[str, Any]):
    """The attributes of a module of TorchScript, or of an object of another class, by name."""

    path: ClassVar[tuple[str, str]]  # the module and the name of its class


class ScriptState(OrderedDict[str, Any]):
    """The state dict of a TorchScript archive.

    attributes  all attributes of the module, a dict in which a submodule is a dict, too
    constants   the tensors in its code
    """

    attributes: ScriptObject
    constants: list[Any]


def _unchanged(data: Any, *_: Any) -> Any:
    return data


LISTS = "build_boollist build_doublelist build_intlist build_tensorlist restore_type_tag".split()


class ScriptReader(Reader):
    """Unpickles the data.pkl of such an archive."""

    def __init__(self, archive: Archive, where: Device | Chosen | None, trusting: bool):
        super().__init__(archive, where, trusting)
        self.calls = {**self.calls, _unchanged: (object, object)}
        self.classes: dict[tuple[str, str], type[ScriptObject]] = {}
        self.texts: dict[str, dict[str, tuple[str, ...]]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch.jit._pickle" and name in LISTS:
            return _unchanged
        if module.partition(".")[0] != "__torch__":
            return super().find_class(module, name)
        if (cls := self.classes.get((module, name))) is None:
            cls = self.classes[module, name] = type(name, (ScriptObject,), {"path": (module, name)})
            self.calls[cls] = ()
        return cls

    def build(self) -> None:
        holder, attributes = self.stack[-2:]
        if not isinstance(holder, ScriptObject):
            super().build()
            return
        if type(attributes) is not dict:  # of a class with __setstate__ of its own
            attributes = {"__getstate__": attributes}
        self.spend(len(attributes))
        holder.update(attributes)
        self.stack.pop()

    def load(self) -> Any:
        root = super().load()
        if not isinstance(root, ScriptObject):
            raise ValueError("the data.pkl of a TorchScript archive holds no module")
        state = ScriptState()
        self.names = {cls: self.names_of(cls) for cls in self.classes.values()}  # of modules
        self.collect(root, "", state, 0)
        state.attributes = root
        state.constants = list(Reader(self.archive, self.where, self.trusting, "constants.pkl", "constants").load())
        return state

    def collect(self, module: ScriptObject, prefix: str, state: ScriptState, depth: int) -> None:
        """Puts the tensors of a module and of those below it into state."""
        if depth > DEEPEST:
            raise Refusal(f"load: the file has more than {DEEPEST} modules within each other")
        names = self.names[type(module)]
        if names is NO_MODULE:
            return
        for name in module if names is None else names:
            self.spend(len(prefix) + len(name))  # modules that share submodules may have many more names than bytes
            if isinstance(value := module.get(name), Tensor):
                state[prefix + name] = value.detach()
        for name, value in module.items():
            self.spend(len(prefix) + 1)
            if isinstance(value, ScriptObject):
                self.collect(value, f"{prefix}{name}.", state, depth + 1)

    def names_of(self, cls: type[ScriptObject]) -> tuple[str, ...] | None:
        """The parameters and buffers of a class, as its text has them; NO_MODULE for a class of other objects; None if
        there is no text: then each tensor counts."""
        module, name = cls.path
        if module not in self.texts:  # each is read once, for all classes of it
            text = self.text(f"code/{module.replace('.', '/')}.py") or ""
            names: dict[str, tuple[str, ...]] = {}
            for its, is_module, lists in CLASS.findall(text):
                names.setdefault(its, tuple(re.findall(r'"([^"]*)"', lists)) if is_module else NO_MODULE)
            self.texts[module] = names
        return self.texts[module].get(name)

    def text(self, path: str) -> str | None:
        if not self.archive.has(path):
            return None
        entry = self.archive.zip.getinfo(f"{self.archive.folder}{path}")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return None
        most = FREE + FOR_A_BYTE * entry.compress_size
        with self.archive.zip.open(entry) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise Refusal(f"load: {entry.filename} has more than {most} bytes")
        return content.decode()
