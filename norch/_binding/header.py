"""Reads the bindings of the C library from the text of its public headers, csrc/norch*.h, which it carries."""

from __future__ import annotations

import ctypes

from .._package.typing import Any

_SCALARS: dict[str, Any] = {
    "intptr_t": ctypes.c_ssize_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


def _result_type(text: str) -> Any:
    if text in ("norch_tensor *", "void *"):
        return ctypes.py_object
    if text == "const char *":
        return ctypes.c_char_p
    if "*" in text:
        return ctypes.c_void_p
    return None if text == "void" else _SCALARS[text]


def _argument_type(text: str) -> Any:
    if "norch_tensor *" in text and "*optional_" not in text:
        return ctypes.py_object
    if "*" in text or text.startswith("bool "):
        return ctypes.c_void_p
    return _SCALARS[text.partition(" ")[0]]


def _read_struct(text: str, constants: dict[str, int]) -> type[ctypes.Structure]:
    body, end, _ = text.partition("typedef struct norch_tensor {")[2].partition("} norch_tensor;")
    if not end:
        raise ImportError("norch: the library's header holds no struct norch_tensor")
    fields: list[tuple[str, Any]] = []
    for field in body.split(";")[:-1]:
        declared, _, size = field.strip().removesuffix("]").partition("[")
        kind, _, name = declared.replace("*", "* ").rpartition(" ")
        base = ctypes.c_void_p if "*" in kind else _SCALARS[kind]
        fields.append((name, base * constants[size] if size else base))
    return type("TensorStruct", (ctypes.Structure,), {"_fields_": fields})


def listed(name_of: Any) -> list[str]:
    """The names that a function of the library returns for 0, 1, ... up to the first NULL."""
    names: list[str] = []
    while (name := name_of(len(names))) is not None:
        names.append(name.decode())
    return names


def read_header(
    library: ctypes.PyDLL, path: str
) -> tuple[dict[str, int], type[ctypes.Structure], dict[str, Any], list[str]]:
    """(constants by name, the struct of tensors, the functions for ctypes by name, the names of builtins) of a library
    loaded from path."""
    for text_of in ("norch_header", "norch_call_name"):
        try:
            getattr(library, text_of).restype = ctypes.c_char_p
        except AttributeError:
            raise ImportError(f"norch: {path} is a library, but not norch's: it lacks {text_of}") from None
    library.norch_call_name.argtypes = [ctypes.c_int64]
    lines = library.norch_header().decode().splitlines()
    directives = [line.split() for line in lines if line[:1] == "#"]
    numbers = {words[1]: int(words[2]) for words in directives if len(words) == 3 and words[2].lstrip("-").isdigit()}
    text = "\n".join([line for line in lines if line[:1] != "#"])
    tensor_struct = _read_struct(text, numbers)
    listed_builtins = listed(library.norch_call_name)
    builtins, functions = set(listed_builtins), {}
    for declaration in text.split(";"):
        head, parenthesis, arguments = declaration.strip().removesuffix(")").partition("(")
        result, _, name = head.rpartition("{")[2].rpartition("norch_")
        if not parenthesis:
            continue
        if name in builtins:  # library.py makes it
            continue
        try:
            function = getattr(library, "norch_" + name)
        except AttributeError:
            raise ImportError(f"norch: {path} lacks norch_{name}, which its own header declares") from None
        function.restype = _result_type(result.strip())
        each = [] if arguments.strip() == "void" else arguments.split(",")
        function.argtypes = [_argument_type(argument.strip()) for argument in each]
        functions["norch_" + name] = function
    constants = {name.removeprefix("NORCH_"): number for name, number in numbers.items()}
    return constants, tensor_struct, functions, listed_builtins
