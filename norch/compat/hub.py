"""``norch.hub``: importable; its functions raise, as norch downloads neither code nor weights."""

from __future__ import annotations

import re
from urllib.parse import urlparse as urlparse

from .._exports import publish
from .refused import refused

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
publish(globals(), name="norch.hub")

download_url_to_file, get_dir, help, list, load, load_state_dict_from_url, set_dir = refused(  # noqa: A001
    "norch.hub",
    "norch downloads neither code nor weights; norch.load reads a file of weights, PyTorch's too",
    "download_url_to_file get_dir help list load load_state_dict_from_url set_dir",
)
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the checksum in a name such as "resnet18-5c106cde.pth"
