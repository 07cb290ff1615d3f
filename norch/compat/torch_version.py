"""``norch.torch_version``: TorchVersion, a version string that compares as versions do."""

from __future__ import annotations

from .._package.typing import Any

__all__ = ["TorchVersion"]

# PEP 440, "Appendix B", without the separators of old versions
_FORM = (
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<n>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<m>\d*)|-(?P<k>\d+))?(?:[-_.]?(?P<dev>dev)[-_.]?(?P<d>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_FIRST, _LAST = (-1,), (1,)


def _key(version: Any) -> tuple[Any, ...]:
    """The sort key of a version; ValueError if the text is not a version."""
    if not isinstance(version, str):
        version = ".".join(str(part) for part in version) if isinstance(version, (tuple, list)) else str(version)
    import re

    match = re.fullmatch(_FORM, version.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{version!r} is not a version")
    part = match.groupdict()
    release = tuple(map(int, part["release"].split(".")))
    while release[-1:] == (0,):
        release = release[:-1]
    pre, post, dev = part["pre"], part["post"] or part["k"], part["dev"]
    before: Any = (0, _PRE.get(pre.lower(), pre.lower()), int(part["n"] or 0)) if pre else _LAST
    if not pre and not post and dev:
        before = _FIRST  # 1.0.dev1 is before 1.0a1
    after: Any = (0, int(part["m"] or part["k"] or 0)) if post else _FIRST
    local: Any = _FIRST
    if part["local"]:
        pieces = re.split(r"[-_.]", part["local"].lower())
        local = (0, *((1, int(piece), "") if piece.isdigit() else (0, 0, piece) for piece in pieces))
    return int(part["epoch"] or 0), release, before, after, (0, int(part["d"] or 0)) if dev else _LAST, local


class TorchVersion(str):
    """A version of PyTorch: a str that compares with strings and tuples of numbers as versions do.

    A text that is not a version is compared as text.

    >>> from norch.torch_version import TorchVersion
    >>> TorchVersion("2.13.0+norch") >= "2.6", TorchVersion("2.13.0+norch") > (2, 2)
    (True, True)
    """

    @property
    def release(self) -> tuple[int, ...]:
        """The version's numbers."""
        return tuple(int(part) for part in self.partition("+")[0].split(".") if part.isdigit())


def _comparison(name: str) -> Any:
    of_keys, of_texts = getattr(tuple, name), getattr(str, name)

    def compare(self: Any, other: Any) -> Any:
        try:
            return of_keys(_key(str(self)), _key(other))
        except ValueError:
            return of_texts(self, other)

    compare.__name__ = name
    return compare


for _name in ("__lt__", "__le__", "__eq__", "__ne__", "__ge__", "__gt__"):
    setattr(TorchVersion, _name, _comparison(_name))
