"""``norch.hub``: importable; its functions raise, as norch downloads neither code nor weights."""

from __future__ import annotations

from .._exports import publish
from .refused import refused

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
publish(globals(), name="norch.hub")

download_url_to_file, get_dir, help, list, load, load_state_dict_from_url, set_dir = refused(  # noqa: A001
    "norch.hub",
    "norch downloads neither code nor weights; norch.load reads a file of weights, PyTorch's too",
    "download_url_to_file get_dir help list load load_state_dict_from_url set_dir",
)
