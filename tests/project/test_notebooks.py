"""What notebooks show: tensors as tables, histograms and images, modules as trees; all well-formed and escaped."""

import io
import math
from html.parser import HTMLParser

import pytest

import norch
from norch import nn

pytestmark = pytest.mark.host

VOID = {"img", "rect"}


class Reader(HTMLParser):
    """Checks that tags close in order, and collects texts and tags."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.texts, self.rows = [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1] == "td":
            self.rows[-1].append(data)

    @property
    def text(self):
        return "".join(self.texts)


def read(x):
    return Reader(x._repr_html_())


def test_a_small_tensor_is_a_table():
    found = read(norch.tensor([[1.0, -2.5], [0.0, 4.0]]))
    assert found.rows == [["1.0000", "-2.5000"], ["0.0000", "4.0000"]]
    assert "Tensor (2, 2), float32, cpu" in found.text and "min -2.5, mean 0.625, max 4" in found.text
    assert read(norch.tensor([3, 1])).rows == [["3", "1"]] and read(norch.tensor(7)).rows == [["7"]]
    assert read(norch.tensor([True, False])).text.count("True") == 2
    assert "1 of 2 are True" in read(norch.tensor([True, False])).text


def test_a_large_tensor_is_cut_and_has_a_histogram():
    x = norch.arange(5000.0).reshape(50, 100)
    found = read(x)
    assert len(found.rows) == 11 and all(len(row) == 11 for row in found.rows)
    assert found.rows[5] == ["…"] * 11 and found.rows[10][10] == "4.9990e+03" and found.rows[0][5] == "…"
    bars = [float(tag[1]["height"]) for tag in found.tags if tag[0] == "rect"]
    assert len(bars) == 30 and max(bars) == 40 and min(bars) > 39
    assert len(x._repr_html_()) < 20000 and len(norch.zeros(1000, 1000)._repr_html_()) < 20000


def test_what_is_no_table_is_text():
    cube = norch.arange(8.0).reshape(2, 2, 2)
    found = read(cube)
    assert not found.rows and repr(cube) in found.text
    assert "(0, 3)" in read(norch.empty(0, 3)).text
    values = norch.tensor([math.nan, 1.0, math.inf, -math.inf])
    assert "1 NaN, 2 infinite" in read(values).text and "min 1, mean 1, max 1" in read(values).text
    assert "2 NaN, 0 infinite" in read(norch.full((2,), math.nan)).text
    assert "int64" in read(norch.arange(40)).text and "rect" in {tag for tag, _ in read(norch.arange(40)).tags}
    assert "float16" in read(norch.ones(40, dtype=norch.float16)).text


def test_gradients_are_told_and_nothing_is_recorded():
    w = nn.Parameter(norch.ones(2))
    assert "Parameter (2,), float32, cpu, requires grad" in read(w).text
    y = w * 2
    assert "requires grad, from MulBackward" in read(y).text
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0] and y.grad_fn.name() == "MulBackward"


def test_a_class_of_tensors_with_a_name_that_needs_escaping():
    odd = type("A<b>", (norch.Tensor,), {})
    found = odd([1.0])._repr_html_()
    assert "A&lt;b&gt;" in found and "<b>A<b>" not in found


# ---- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "mode"),
    [
        (norch.arange(120).reshape(10, 12).to(norch.uint8), "L"),
        (norch.randint(0, 256, (3, 10, 12), dtype=norch.uint8), "RGB"),
        (norch.randint(0, 256, (10, 12, 4), dtype=norch.uint8), "RGBA"),
        (norch.rand(1, 10, 12), "L"),
        (norch.rand(12, 10, 3).permute(2, 1, 0), "RGB"),
    ],
)
def test_images_are_png_files(x, mode):
    image = pytest.importorskip("PIL.Image")
    png = x._repr_png_()
    seen = image.open(io.BytesIO(png))
    assert seen.mode == mode and seen.size == (12, 10)
    first = x if x.dtype is norch.uint8 else (x * 255).round()
    planes = first if first.ndim == 2 or first.shape[-1] == 4 else first.permute(1, 2, 0)
    assert list(seen.tobytes()) == [int(v) for v in planes.flatten().tolist()]
    assert "data:image/png;base64," in x._repr_html_() and Reader(x._repr_html_())


@pytest.mark.parametrize(
    "x",
    [
        norch.rand(3, 7, 12),
        norch.rand(2, 10, 12),
        norch.rand(3, 10, 12) * 2,
        norch.rand(10, 12),
        norch.ones(3, 10, 12, dtype=norch.int64),
        norch.full((3, 10, 12), math.nan),
        norch.ones(10, 2000, dtype=norch.uint8),
    ],
)
def test_what_is_no_image(x):
    assert x._repr_png_() is None and "base64" not in x._repr_html_()


# ---- modules ---------------------------------------------------------------------------------------------------------


def test_a_module_is_a_tree():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()))
    model[0].bias.requires_grad_(False)
    found = read(model)
    assert "15 parameters, 12 of them trainable" in found.text
    assert "0 Linear(in_features=2, out_features=3, bias=True) 9" in found.text
    assert "parameter bias (3,) float32 cpu, fixed" in found.text and "buffer running_mean (3,)" in found.text
    details = [attributes for tag, attributes in found.tags if tag == "details"]
    assert len(details) == 4 and ["open" in one for one in details] == [True, False, True, False]
    assert read(nn.ReLU()).text == "ReLU()0 parameters"


def test_names_of_modules_are_escaped():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<script>alert(1)</script>"

    model = nn.Sequential()
    model.add_module("<b>&", Odd())
    html = model._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "&lt;b&gt;&amp;" in html and Reader(html)


def test_a_tensor_that_cannot_be_read_has_no_html():
    seen = []

    def show(x):
        seen.append(x._repr_html_())
        return x + 1

    captured, x = norch.capture(show), norch.ones(2)
    captured(x)
    with pytest.raises(norch.CaptureError):  # a recording reads no elements
        captured(x)
    assert seen[0] is not None and seen[1:] == [None]
