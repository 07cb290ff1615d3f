"""``norch.hub``: importable; its functions raise, as norch downloads neither code nor weights."""

from __future__ import annotations

from .._left_out import nothing_more
from .refused import refused

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
__dir__ = __all__.copy  # completion shows the public names only
__getattr__ = nothing_more("norch.hub")

download_url_to_file, get_dir, help, list, load, load_state_dict_from_url, set_dir = refused(  # noqa: A001
    "norch.hub",
    "norch downloads neither code nor weights; norch.load reads a file of weights, PyTorch's too",
    "download_url_to_file get_dir help list load load_state_dict_from_url set_dir",
)
