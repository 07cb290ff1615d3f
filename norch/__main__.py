"""``python -m norch script.py args``, ``python -m norch -m module args``, ``python -m norch -c code args``: runs a
program written for PyTorch, with norch as its torch (docs/compatibility.md)."""

import sys

USAGE = """usage: python -m norch script.py [argument ...]
       python -m norch -m module [argument ...]
       python -m norch -c code [argument ...]

Runs a program for PyTorch with norch as its torch."""


def main(arguments: list[str]) -> None:
    """Runs what the arguments name, as python itself would."""
    from .compat.as_torch import open_door
    from .compat.running import run_code, run_module, run_script

    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        raise SystemExit(0 if arguments else 2)
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c") and not rest:
        raise SystemExit(f"python -m norch: an argument is expected after {first}\n{USAGE}")
    if first.startswith("-") and first not in ("-m", "-c"):
        raise SystemExit(f"python -m norch: {first} is no option\n{USAGE}")
    open_door()
    if first == "-m":
        run_module(rest[0], rest[1:])
    elif first == "-c":
        run_code(rest[0], rest[1:])
    else:
        run_script(first, rest)


if __name__ == "__main__":
    main(sys.argv[1:])
