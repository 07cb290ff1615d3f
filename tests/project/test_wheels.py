"""What is handed out: the libraries for macOS and Windows as zig makes them, and what release/ says of wheels."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import norch

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "release"))
import check  # noqa: E402
import macho  # noqa: E402
import pe  # noqa: E402


def clean_environment():
    """This one without what make, or a library under test, has set."""
    ours = ("NORCH_", "MAKE", "MFLAGS", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def compiled_for_arm64(target, library):
    """A library that zig makes, without optimisation."""
    found = importlib.util.find_spec("ziglang")
    if found is None:
        pytest.skip('needs zig, which is in the extra "release"')
    zig = Path(found.origin).with_name("zig")
    variables = [f"CC={zig} cc -target {target}", f"BUILD={library.parent}", f"LIB={library}", "NVCC="]
    variables += ["CFLAGS=-O0 -fno-sanitize=undefined", "WERROR=-Werror"]
    done = subprocess.run(
        ["make", *variables, str(library)], cwd=ROOT, env=clean_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "ISA builds  neon" in done.stdout
    return library


@pytest.fixture(scope="module")
def library_for_macos(tmp_path_factory):
    return compiled_for_arm64("aarch64-macos.11.0", tmp_path_factory.mktemp("macos") / "libnorch.so")


@pytest.fixture(scope="module")
def library_for_windows(tmp_path_factory):
    return compiled_for_arm64("aarch64-windows-gnu", tmp_path_factory.mktemp("windows") / "libnorch.dll")


@pytest.fixture
def wheels():
    pytest.importorskip("elftools", reason='needs auditwheel, which is in the extra "release"')
    pytest.importorskip("auditwheel", reason='needs auditwheel, which is in the extra "release"')
    return importlib.import_module("wheels")


def wheel(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_the_library_for_macos_has_the_symbols_of_the_header_and_asks_for_those_of_python(library_for_macos, wheels):
    library = macho.read(library_for_macos)
    assert library.machine == "arm64" and library.oldest_system == (11, 0) and library.signed
    assert library.loads == ["/usr/lib/libSystem.B.dylib"]
    assert library.defined == wheels.exported()
    assert library.dynamic and all(name.startswith(("Py", "_Py")) for name in library.dynamic)
    assert library.dynamic <= library.weak


@pytest.mark.parametrize(("read", "said"), [(macho.read, r"libnorch\.so is no Mach-O library"), (pe.read, "is no DLL")])
def test_what_is_no_library_of_the_system_is_refused(read, said):
    with pytest.raises(ValueError, match=said):
        read(Path(norch.__file__).with_name("libnorch.so"))


def test_the_library_for_windows_exports_the_header_and_is_linked_with_no_version_of_python(
    library_for_windows, wheels
):
    library = pe.read(library_for_windows)
    assert library.machine == "arm64" and library.exports == wheels.exported()
    assert "KERNEL32.dll" in library.loads and not any("python" in name.lower() for name in library.loads)
    assert wheels.wrong_on_windows(library_for_windows, "win_arm64") == []
    assert wheels.wrong_on_windows(library_for_windows, "win_amd64") == ["is for arm64"]


def test_a_wheel_for_windows_holds_a_dll_and_no_other_library(library_for_windows, wheels, tmp_path):
    name, ours = tmp_path / "norch_dl-0.2.0-py3-none-win_arm64.whl", library_for_windows.read_bytes()
    good = {"norch/libnorch.dll": ours, "norch/libnorch_licenses/musl.txt": b""}
    assert wheels.wrong(wheel(name, **good)) == ["lacks the license of mingw-w64"]
    assert wheels.wrong(wheel(name, **good, **{"norch/libnorch_licenses/mingw-w64.txt": b""})) == []
    assert wheels.wrong(wheel(name, **{"norch/libnorch.so": ours})) == ["holds the libraries ['norch/libnorch.so']"]
    both = {"norch/libnorch.dll": ours, "norch/backend.lib": b""}
    assert wheels.wrong(wheel(name, **both)) == ["holds the libraries ['norch/libnorch.dll', 'norch/backend.lib']"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_library_computes_in_a_program_without_python(tmp_path):
    library = Path(norch.__file__).with_name("libnorch.so").resolve()
    program, source = tmp_path / "program", ROOT / "tests" / "native" / "without_python.c"
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", program, source, library]
    done = subprocess.run([*command, f"-Wl,-rpath,{library.parent}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("good: "), done.stdout + done.stderr


def test_bad_wheels_are_named(wheels, tmp_path, capsys):
    library = Path(norch.__file__).with_name("libnorch.so").read_bytes()
    machine = os.uname().machine
    assert "is not named" in wheels.wrong(tmp_path / "norch_dl-0.2.0-cp311-cp311-linux_x86_64.whl")[0]
    ours = {"norch/libnorch.so": library}
    here = wheel(tmp_path / f"norch_dl-0.2.0-py3-none-manylinux_2_5_{machine}.whl", **ours)
    assert any(word.startswith("auditwheel: ") for word in wheels.wrong(here))  # this system is younger than that
    other = wheel(tmp_path / "norch_dl-0.2.0-py3-none-manylinux_2_17_ppc64le.whl", **ours)
    assert f"is for {machine}" in wheels.wrong(other)
    with_plugin = wheel(tmp_path / "norch_dl-0.2.0-py3-none-any.whl", **ours, **{"norch/libnorch_cuda.so": b""})
    assert wheels.wrong(with_plugin) == ["holds the libraries ['norch/libnorch.so', 'norch/libnorch_cuda.so']"]
    assert wheels.main([str(with_plugin)]) == 1 and "holds the libraries" in capsys.readouterr().out


def test_wrong_symbols_are_named(wheels):
    good = wheels.exported()
    assert wheels.wrong_symbols(good, {"PyErr_Clear"}, {"PyErr_Clear"}) == []
    assert wheels.wrong_symbols(good | {"nr_fail"}, set(), set()) == ["exports nr_fail"]
    assert wheels.wrong_symbols(good - {"norch_abi"}, set(), set()) == ["lacks norch_abi"]
    assert wheels.wrong_symbols(good, {"hypot"}, {"hypot"}) == ["needs hypot, which no library has"]
    assert wheels.wrong_symbols(good, {"PyErr_Clear"}, set()) == ["cannot do without PyErr_Clear"]


# setuptools refuses to be imported where a test has imported distutils.
WITHOUT_COMMENTS = """
import runpy, sys, setuptools
setuptools.setup = lambda **_: None
print(runpy.run_path("setup.py")["without_comments"](sys.stdin.read()), end="")
"""


@pytest.mark.parametrize(("docstring", "left"), [("", ""), ('"""A module.\n\nOf # two.\n"""  # lines\n', "\n" * 4)])
def test_modules_for_a_page_lose_their_comments_and_docstring_alone(wheels, docstring, left):
    source = (
        f'{docstring}# one\nx = "# two"  # three\n\n\ndef f(y):\n    """Four # five."""\n    # six\n'
        '    return f"#{y}"  # seven'
    )
    command = [sys.executable, "-c", WITHOUT_COMMENTS]
    shorter = subprocess.run(command, input=source, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shorter == left + '\nx = "# two"\n\n\ndef f(y):\n    """Four # five."""\n\n    return f"#{y}"'
    assert wheels.parsed(shorter.encode()) == wheels.parsed(source.encode())
    assert wheels.parsed(b"\n" + shorter.encode()) != wheels.parsed(source.encode())


@pytest.mark.parametrize(
    ("system", "libc", "machine", "ours"),
    [
        ("linux", "glibc", "x86_64", "manylinux_2_17_x86_64"),
        ("linux", "", "aarch64", "musllinux_1_2_aarch64"),
        ("darwin", "", "arm64", "macosx_11_0_arm64"),
        ("darwin", "", "x86_64", "macosx_10_13_x86_64"),
    ],
)
def test_a_release_is_tried_on_the_wheel_of_this_machine(monkeypatch, system, libc, machine, ours):
    monkeypatch.setattr(check.sys, "platform", system)
    monkeypatch.setattr(check.platform, "libc_ver", lambda: (libc, ""))
    monkeypatch.setattr(check.platform, "machine", lambda: machine)
    names = set(re.findall(r"^TARGET_(\w+)", (ROOT / "mk" / "release.mk").read_text(), re.M))
    assert {name for name in names if check.for_this_machine(Path(f"norch_dl-0.2.0-py3-none-{name}.whl"))} == {ours}


def test_a_release_with_a_part_missing_is_refused(tmp_path, monkeypatch):
    (tmp_path / f"norch_dl-{norch.__version__}.tar.gz").touch()
    with pytest.raises(check.Failed, match="holds 0 wheels for this machine and 1 archives of sources"):
        check.check(tmp_path)
    monkeypatch.setattr(check, "for_this_machine", lambda wheel: True)
    monkeypatch.setattr(check, "PYTHONS", ["python3.99"])
    (tmp_path / "norch_dl-0-py3-none-any.whl").touch()
    with pytest.raises(check.Failed, match="none of python3.99 is here"):
        check.check(tmp_path)
    with pytest.raises(check.Failed, match="ended with status 3:\nwhy"):
        check.run(sys.executable, "-c", "print('why'); raise SystemExit(3)")


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_windows_is_sent_to_wsl():
    done = subprocess.run(["make", "OS=Windows_NT"], cwd=ROOT, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.count("\n") == 1
    assert "norch is not built on Windows: install its wheel, or install WSL" in done.stderr
