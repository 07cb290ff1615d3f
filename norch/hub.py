"""``norch.hub``: reads downloaded weights from PyTorch's folder, and models from the hubconf.py of a folder. norch
downloads neither code nor weights.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any
from urllib.parse import urlparse as urlparse

from ._package.exports import publish
from .compat.refused import refused

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
publish(globals())

WHY = "norch downloads neither code nor weights; norch.load reads a file of weights, PyTorch's too"
download_url_to_file, help, list = refused("norch.hub", WHY, "download_url_to_file help list")  # noqa: A001
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the checksum in a name such as "resnet18-5c106cde.pth"
_directory: str | None = None


def _get_torch_home() -> str:
    """The folder of PyTorch's caches: of the variables TORCH_HOME and XDG_CACHE_HOME, or ~/.cache/torch."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder that load_state_dict_from_url() searches: the one of set_dir(), or hub in PyTorch's cache folder."""
    return _directory or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder that load_state_dict_from_url() looks in."""
    global _directory
    _directory = os.path.expanduser(os.fspath(d))


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls the function `model` in hubconf.py of the folder repo_or_dir with the other arguments, and returns its
    result. source must be "local": NotImplementedError for "github". RuntimeError if the folder has no such function,
    or lacks a package that hubconf.py requires.
    """
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(f"norch.hub.load: {WHY}; source='local' runs the hubconf.py of a folder")
    folder = os.path.expanduser(os.fspath(repo_or_dir))
    spec = spec_from_file_location("hubconf", os.path.join(folder, "hubconf.py"))
    assert spec is not None and spec.loader is not None  # of a path that ends in .py
    module = module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
        if missing := [name for name in getattr(module, "dependencies", ()) if find_spec(name) is None]:
            raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
        entry = getattr(module, model, None)
        if not callable(entry):
            raise RuntimeError(f"Cannot find callable {model} in hubconf")
        return entry(*args, **kwargs)
    finally:
        sys.path.remove(folder)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Reads the weights from the file with the URL's name in model_dir, by default get_dir()/checkpoints, if PyTorch or
    you stored it there. NotImplementedError if the file does not exist.
    """
    from .serialization import load as read

    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        raise NotImplementedError(
            f"norch.hub.load_state_dict_from_url: norch downloads neither code nor weights; store {url} as {path}"
        )
    return read(path, map_location)
