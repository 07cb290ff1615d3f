"""Writes calls.inc, the functions of headers as builtins of Python, and the list of the builtins that sources define:
`python make_calls.py norch.h ... calls.c ... > calls.inc`.

A function of a header that takes or makes a tensor becomes a builtin if each of its parameters is one of the kinds
below. Types and names of parameters decide, so that a header is the only place that holds a signature. Functions with
other parameters, and those without a tensor, are left to ctypes (norch/_binding/library.py).

    norch_tensor *x                        tensor      a Tensor
    norch_tensor *optional_x               optional    a Tensor or None
    int64_t n, const void *xs, ...         columns     a sequence of tensors; for several pointers a tuple of as many
                                                       sequences of one length; all but the first may be None
    int64_t n, const int64_t *sizes        sizes       a sequence of integers
    int64_t n, const int64_t *dims         axes        a sequence of integers, or None for all axes: n = -1
    int64_t device_type, device_index      device      a tuple of two integers
    int64_t op                             opcode      a row of ops.def
    int64_t, double, bool                  integer, number, flag
    uint64_t *, const double *             address     an integer: the address of memory that the caller keeps

Results: norch_tensor *, bool, int64_t; int32_t is a status, which gives None.
"""

import re
import sys

PROTOTYPE = re.compile(r"^([\w ]+?\**)\s*\bnorch_(\w+)\(([^)]*)\);", re.M)
WRITTEN = re.compile(r"^NR_BUILTIN\((\w+)\) \{", re.M)
# One parameter, or a few that go together, in the order in which they are tried.
KINDS = [
    ("columns", r"int64_t \w+((?:, const void \*\w+)+)"),
    ("axes", r"int64_t \w+, const int64_t \*dims"),
    ("sizes", r"int64_t \w+, const int64_t \*\w+"),
    ("device", r"int64_t device_type, int64_t device_index"),
    ("optional", r"(?:const )?norch_tensor \*optional_\w+"),
    ("tensor", r"(?:const )?norch_tensor \*\w+"),
    ("opcode", r"int64_t op"),
    ("integer", r"int64_t \w+"),
    ("number", r"double \w+"),
    ("flag", r"bool \w+"),
    ("address", r"(?:uint64_t|const double) \*\w+"),
]
# Kinds whose arguments hand the call over to a rule of norch/batching, and calls that read only shapes and dtypes.
STOPPING = {"columns", "optional", "tensor", "address"}
OF_HEADERS = {"meta"}
RESULTS = {"norch_tensor *": "tensor", "bool": "truth", "int64_t": "integer", "int32_t": "status"}
PASSED = {"axes": ".count, {0}.values", "sizes": ".count, {0}.values", "device": ".type, {0}.index"}


def read(parameters):
    """[(kind, name, pointers of a columns)] of a list of parameters; None if one is of no kind."""
    found = []
    while parameters:
        for kind, pattern in KINDS:
            match = re.match(pattern + r"(?:, |$)", parameters)
            if match:
                name = "in_" + re.findall(r"\w+", match[0])[-1]
                found.append((kind, name, match[1].count("*") if kind == "columns" else 0))
                parameters = parameters[match.end() :]
                break
        else:
            return None
    return found


def builtin(name, result, parameters):
    """The C function that takes the arguments from Python, calls norch_<name> and gives its result."""
    lines = [
        f"static void *py_{name}(void *self, void *const *args, nr_ssize n) {{",
        "    (void)self;",
        f'    const char *called = "{name}";',
        f"    if (!nr_counted(called, {len(parameters)}, n)) return NULL;",
    ]
    passed = []
    for i, (kind, argument, pointers) in enumerate(parameters):
        width, held = (f"{pointers}, ", "__attribute__((cleanup(drop_columns))) ") if pointers else ("", "")
        lines.append(f"    {held}{kind} {argument};")
        stopped = f'nr_stopped("{name}", args, {len(parameters)})' if kind in STOPPING else "NULL"
        take = "header" if name in OF_HEADERS else kind
        lines.append(f"    if (!take_{take}(called, args[{i}], {width}&{argument})) return {stopped};")
        if kind == "opcode":  # messages about the arguments after it name the operation
            lines.append(f"    if (norch_op_name({argument})) called = norch_op_name({argument});")
        if pointers:
            passed += [f"{argument}.count", *(f"{argument}.column[{c}]" for c in range(pointers))]
        else:
            passed.append(argument + PASSED.get(kind, "").format(argument))
    lines.append(f"    return give_{result}(called, norch_{name}({', '.join(passed)}));")
    return "\n".join([*lines, "}", ""])


def main():
    text = {".h": "", ".c": ""}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text[path[-2:]] += file.read()
    names, written = [], WRITTEN.findall(text[".c"])
    for result, name, parameters in PROTOTYPE.findall(re.sub(r"/\*.*?\*/", "", text[".h"], flags=re.S)):
        kinds = read(" ".join(parameters.split()))
        tensors = "norch_tensor" in result or any(kind in ("tensor", "optional", "columns") for kind, *_ in kinds or ())
        if kinds and tensors and result in RESULTS:
            names.append(name)
            print(builtin(name, RESULTS[result], kinds))
    print("".join(f"NR_BUILTIN({name});\n" for name in written))
    print("#define BUILTINS(ROW) " + " ".join(f"ROW({name})" for name in names))
    print("#define WRITTEN(ROW) " + " ".join(f"ROW({name})" for name in written))


main()
