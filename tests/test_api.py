"""Nothing public is lost, or takes other arguments, unless api.txt says so: `make api` writes it anew."""

import re

import api
import pytest

pytestmark = pytest.mark.host

LINE = re.compile(r"([\w.]+)(.*)")


def test_what_was_public_is_so_still():
    """Names may be added."""
    stored = [LINE.fullmatch(line).groups() for line in api.STORED.read_text().splitlines()]
    assert len(stored) > 2000
    missing, changed = [], []
    for path, before in stored:
        try:
            now = api.described(api.find(path))
        except AttributeError:
            missing.append(path)
            continue
        if now != before:
            changed.append(f"{path}: was {before}, is {now}")
    assert not missing, f"gone: {' '.join(missing)}"
    assert not changed, "\n".join(["changed:", *changed])


def test_the_list_is_what_make_api_writes():
    """But for additions: so a public module that hands on fewer names is found too."""
    assert set(api.STORED.read_text().splitlines()) <= set(api.lines())


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (lambda a, /, b: None, "(a, /, b)"),
        (lambda *a, b=len, **c: None, "(*a, b=..., **c)"),
        (property(), ": attribute"),
        (2.5, " = 2.5"),
        (api, ": module"),
        (object(), ": object"),
    ],
)
def test_how_a_name_is_described(thing, text):
    assert api.described(thing) == text
