"""The pages of `make site` in Chromium, without a window: chapters run cell by cell, exercises are checked, playgrounds
play, in light and dark and on a phone. `make test-site` builds and runs them."""

from __future__ import annotations

import doctest
import gzip
import importlib.util
import json
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
CHECKOUT = Path(__file__).resolve().parents[2]
SITE, LEARN = CHECKOUT / "build" / "site", CHECKOUT / "docs" / "learn"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHAPTERS = sorted((path.stem for path in LEARN.glob("[0-9]*_*.md")), key=lambda name: int(name.partition("_")[0]))
FIRST_PROMPT = "document.querySelector('.jp-CodeCell .jp-InputPrompt').innerText.trim()"
MODES = {"light": ("light", 1300), "dark": ("dark", 1300), "phone": ("light", 420)}

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (Debian, Ubuntu: apt install chromium)"),
    pytest.mark.skipif(not (SITE / "_static/live/norch.zip").exists(), reason="needs what make site builds"),
]


def _some_slow(*quick: str) -> list[Any]:
    """The chapters, slow but for some."""
    assert set(quick) < set(CHAPTERS)
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in CHAPTERS]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with _module(CHECKOUT / "docs/live/serve.py").server(str(SITE)) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page that may load files of the site alone, and whose scripts must not fail."""
    context = browser.new_context(base_url=address)
    made = context.new_page()
    made.set_default_timeout(120_000)
    playwright.expect.set_options(timeout=120_000)
    wrong: list[str] = []
    made.on("request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or wrong.append(asked.url))
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("requestfailed", lambda asked: wrong.append(f"{asked.url}: {asked.failure}"))
    yield made
    context.close()
    assert not wrong, wrong


def _in_each_mode(page: Any) -> Iterator[str]:
    """Light, dark, and on a phone, one after another; nothing may scroll the page sideways, or leave a playground."""
    for mode, (scheme, width) in MODES.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        yield mode
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{mode} scrolls sideways"
        whole = "[...document.querySelectorAll('.play')].every(play => play.scrollWidth <= play.clientWidth)"
        assert page.evaluate(whole), f"{mode} cuts off a part of a playground"


def _run(cell: Any) -> list[dict[str, Any]]:
    """What came out of a cell, as printed, by clicking its buttons."""
    bar = cell.locator("xpath=following-sibling::div[contains(@class, 'live-bar')][1]")
    reset, note = bar.get_by_role("button", name="Reset"), bar.locator(".live-note")
    if reset.is_visible():
        reset.click()
        playwright.expect(cell).to_be_visible()
    bar.get_by_role("button", name="Run").click()
    playwright.expect(note).to_have_attribute("data-state", re.compile("good|bad"))
    shown: list[dict[str, Any]] = cell.evaluate("block => block.live.shown")
    return shown


def _compare(block: str, shown: list[dict[str, Any]]) -> None:
    """What comes out of each example of a block is what the chapter says."""
    checker, lines = doctest.OutputChecker(), block.splitlines()
    for example in doctest.DocTestParser().get_examples(block):
        before = sum(line.startswith((">>>", "...")) for line in lines[: example.lineno])
        line = before + example.source.rstrip().count("\n") + 1  # the last one of the statement in the cell
        parts = [part for part in shown if part["line"] == line]
        found = "".join(part["text"] for part in parts)
        if example.options.get(doctest.SKIP):
            continue
        assert bool(example.exc_msg) == any(part["error"] for part in parts), f"{example.source}{found}"
        if example.exc_msg:
            found = found.rstrip().rpartition("\n")[2] + "\n"
        wanted = example.exc_msg or example.want
        assert checker.check_output(wanted, found, doctest.ELLIPSIS), f"{example.source}gives {found}, not {wanted}"


# All chapters take minutes, and make test has run their code; 5 has C.
@pytest.mark.parametrize("chapter", _some_slow("1_tensor", "5_library"))
def test_a_chapter_runs_and_its_exercise_is_checked(page: Any, chapter: str) -> None:
    page.goto(f"/learn/{chapter}.html")
    blocks = _module(LEARN / "chapter.py").blocks(LEARN / f"{chapter}.md")
    cells, exercises = page.locator("div.live"), page.locator("div.exercise")
    assert cells.count() == len(blocks) > 3 and exercises.count() > 0
    for at, block in enumerate(blocks):
        shown = _run(cells.nth(at))
        if block.startswith(">>>"):
            _compare(block, shown)
        else:
            assert not any(part["error"] for part in shown), shown
    for box in exercises.all():
        _solve(box)
    assert len([*_in_each_mode(page)]) == len(MODES)  # with what came out


def _solve(box: Any) -> None:
    """An exercise fails as it is printed, and passes with the solution."""
    check, note = box.get_by_role("button", name="Check"), box.locator(".live-note")
    box.get_by_role("button", name="Reset").click()
    check.click()
    playwright.expect(note).to_have_text("not yet")
    box.locator("details.solution").evaluate("details => { details.open = true; }")
    box.get_by_role("button", name="Put it into the exercise").click()
    playwright.expect(note).to_have_text("edited")
    check.click()
    playwright.expect(note).to_have_text("solved")


def _write(editor: Any, text: str) -> None:
    """Replaces the text of an editor, and runs it, by the keyboard."""
    editor.locator(".cm-content").click()
    editor.page.keyboard.press("ControlOrMeta+a")
    editor.page.keyboard.insert_text(text)
    editor.page.keyboard.press("Shift+Enter")


def test_a_cell_runs_what_is_above_it_is_edited_stopped_and_reset(page: Any) -> None:
    page.goto("/learn/1_tensor.html")
    cells = page.locator("div.live")
    shown = _run(cells.nth(2))
    assert [part["text"].strip() for part in shown][1] == "[4, 5, 6, 7]"
    editor = page.locator(".live-editor").nth(2)
    _write(editor, "print(x.shape)\n1 / 0\nprint(2)")
    note = page.locator(".live-note").nth(2)
    playwright.expect(note).to_have_text("raised")
    text = editor.inner_text()
    assert "(3, 4)" in text and "ZeroDivisionError" in text and "session.py" not in text
    _write(editor, "while True: pass")
    playwright.expect(note).to_have_text("running")
    page.get_by_role("button", name="Stop").click()
    playwright.expect(note).to_have_text("stopped")
    shown = _run(cells.nth(2))  # Python starts again, and runs the cells above again
    assert [part["text"].strip() for part in shown][1] == "[4, 5, 6, 7]"


def test_the_front_page_runs_its_program(page: Any) -> None:
    page.goto("/index.html")
    shown = _run(page.locator("div.live"))
    assert "".join(part["text"] for part in shown) == "[False, True, True, False]\n"  # of no other statement


def _says(page: Any, text: str, wanted: str) -> None:
    """What comes out of the page's first cell, once it holds `text`, or is said beside it, has the wanted words."""
    cell, note = page.locator("div.live").first, page.locator(".live-note").first
    _write(page.locator(".live-editor").first, text)
    playwright.expect(note).to_have_attribute("data-state", re.compile("good|bad"))
    shown = "".join(part["text"] for part in cell.evaluate("block => block.live.shown")) + note.inner_text()
    assert wanted in shown, f"{text}: {shown[-2000:]}"


def test_mistakes_are_explained_and_python_goes_on(page: Any) -> None:
    page.goto("/learn/1_tensor.html")
    _run(page.locator("div.live").first)
    for text, wanted in {
        "print((1, 2)": "'(' was never closed",
        "import norch\nnorch.ones(3, 4) @ norch.ones(3, 4)": "sizes 4 and 3 of the inner dimension do not match",
        "norch.ones(800_000_000)": "OutOfMemoryError: ones: out of memory for 3200000000 bytes",
        "norch.ones(2, device='cuda')": 'a page has no CUDA; leave the tensors on "cpu"',
        "import numpy": "A page has no packages but norch and Python's own.",
        "input('which? ')": "a page cannot be asked; write the value into the cell",
        "for i in range(100_000): print(i)": "... and more",
        "import os\nos._exit(3)": "Python has ended (Program terminated with exit(3))",
        "print(111 * 111)": "12321",
    }.items():
        _says(page, text, wanted)


def test_a_page_loads_byte_code_and_keeps_the_sources(page: Any) -> None:
    page.goto("/learn/1_tensor.html")
    _run(page.locator("div.live").first)
    columns = "list(nn.Linear.forward.__code__.co_positions())[-1][2:]"  # a compiler of the page would tell them
    _says(page, f"import norch\nfrom norch import nn\n{columns}", "(None, None)")
    _says(page, columns.replace("nn.Linear.forward", "(lambda: 1)"), "(14, 15)")
    _says(page, "import inspect\ninspect.getsource(nn.Linear.forward)", "def forward(self, input: Tensor) -> Tensor:")
    _says(page, "nn.Linear(2, 1)(norch.ones(3))", "\n    return FUNCTIONS[")


def test_c_that_was_not_compiled_is_refused(page: Any) -> None:
    page.goto("/learn/5_library.html")
    _run(page.locator("div.live").nth(1))
    _write(page.locator(".live-editor").first, 'source = "int x;"')
    playwright.expect(page.locator(".live-note").first).to_have_attribute("data-state", "good")
    page.locator(".live-editor").nth(1).locator(".cm-content").press("Shift+Enter")
    playwright.expect(page.locator(".live-note").nth(1)).to_have_text("raised")
    assert "a page has no C compiler" in page.locator(".live-editor").nth(1).inner_text()


def test_pages_can_be_read_without_javascript(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/learn/1_tensor.html")
    text = page.locator("article").inner_text()
    assert "[[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]" in text and "def windows(x, width):" in text
    page.locator("details.solution summary").click()
    assert page.get_by_text("return x.as_strided(").is_visible()
    context.close()


@pytest.mark.parametrize("path", ["norch.exp", "norch.std", "norch.fft.rfft2", "norch.nn.functional.dropout2d"])
def test_entries_of_the_reference_show_their_examples(path: str) -> None:
    text = (SITE / "reference" / f"{path.rpartition('.')[0]}.html").read_text(encoding="utf-8")
    entry = text.partition(f'id="{path}">')[2].partition("<dt ")[0]
    (example,) = re.findall(r"<pre>(.*?)</pre>", entry, re.S)
    assert f"{path}(" in re.sub(r"<[^>]*>", "", example)


def test_what_a_page_loads_beside_pyodide_is_small() -> None:
    live = SITE / "_static" / "live"
    files = [path for path in live.rglob("*") if path.is_file() and "pyodide" not in path.parts]
    assert {"page.js", "editor.js", "norch.zip"} <= {path.name for path in files}
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 4_000_000


def _play(page: Any, name: str) -> Any:
    page.goto("/learn/play.html")
    return page.locator(f"norch-{name}")


def test_strides_are_played_with(page: Any) -> None:
    play = _play(page, "strides")
    for _ in _in_each_mode(page):
        play.get_by_role("button", name="x.T", exact=True).click()
        assert "x.as_strided((4, 3), (1, 4), 0)" in play.inner_text()
        play.locator(".cells button").nth(4).click()
        assert "element (1, 1) is at 0 + 1·(1) + 1·(4) = 5" in play.inner_text()
    for part, value in enumerate([2, 4, 8, 1, 0]):
        play.locator("input").nth(part).fill(str(value))
    assert "Puzzle 2 of 3" in play.inner_text()
    play.locator("input").nth(4).fill("9")
    assert "raises" in play.inner_text()


def test_the_walk_back_is_right_and_the_wrong_order_is_wrong(page: Any) -> None:
    play = _play(page, "reverse")
    for _ in _in_each_mode(page):
        for order, verdict in ((False, "right."), (True, "wrong")):
            play.get_by_role("checkbox").set_checked(order)
            play.get_by_role("button", name="From the start").click()
            while "waiting, youngest first: nothing" not in play.inner_text():
                play.get_by_role("button", name="Next node").click()
            assert verdict in play.inner_text()


def test_a_product_loads_the_lines_that_a_cache_would(page: Any) -> None:
    def loads(order: Iterable[tuple[int, int, int]], lines: int) -> int:
        cache: dict[tuple[str, int, int], None] = {}
        count = 0
        for i, j, k in order:
            for line in (("a", i, k // 4), ("b", k, j // 4), ("c", i, j // 4)):
                count += line not in cache
                cache.pop(line, None)
                cache[line] = None
                if len(cache) > lines:
                    del cache[next(iter(cache))]
        return count

    play = _play(page, "tile")
    n = range(12)
    orders = {
        "i, j, k": [(i, j, k) for i in n for j in n for k in n],
        "i, k, j": [(i, j, k) for i in n for k in n for j in n],
        "tiles": [
            (i, j, k)
            for top in n[::4]
            for left in n[::4]
            for k in n
            for i in n[top : top + 4]
            for j in n[left : left + 4]
        ],
    }
    for _ in _in_each_mode(page):
        for name, order in orders.items():
            play.get_by_role("button", name=name).click()
            play.get_by_role("button", name="To the end").click()
            assert f"1728 of 1728 multiply-adds, {loads(order, 12)} cache lines loaded" in play.inner_text()


def test_a_warp_moves_the_sectors_that_it_touches(page: Any) -> None:
    play = _play(page, "warp")
    for _ in _in_each_mode(page):
        for stride, offset in ((1, 0), (1, 1), (2, 0), (3, 5), (8, 7), (0, 3)):
            for part, value in enumerate((stride, offset)):
                play.locator("input").nth(part).fill(str(value))
            reads = [offset + stride * thread for thread in range(32)]
            sectors, numbers = len({at // 8 for at in reads}), len(set(reads))
            assert f"{sectors} sectors, {32 * sectors} bytes moved; {4 * numbers} of them" in play.inner_text()


def test_blocks_are_shared_as_in_the_chapter(page: Any) -> None:
    play = _play(page, "blocks")
    share = _module(LEARN / "chapter.py").run(next(LEARN.glob("*_replay.md")))["share"]
    wanted = {}
    for program, calls in play.evaluate("element => element.programs").items():
        results = [name for name, _, _ in calls if name in ("y", "dw1", "dw2", "dw3")]
        places = share([(formula, inputs, name) for name, formula, inputs in calls], results)
        wanted[program] = len(calls), len(set(places.values()))
    assert wanted["gelu"] == (9, 3)
    for _ in _in_each_mode(page):
        for program, (count, blocks) in wanted.items():
            play.get_by_role("button", name=program).click()
            play.get_by_role("button", name="blocks shared").click()
            assert f"{count} results in {blocks} blocks" in play.inner_text()
            play.get_by_role("button", name="a block for each").click()
            assert f"{count} results in {count} blocks" in play.inner_text()


def test_a_drawn_digit_is_read(page: Any) -> None:
    play = _play(page, "digit")
    play.locator("canvas").drag_to(play.locator("canvas"), source_position={"x": 112, "y": 30})
    playwright.expect(play.locator(".say")).to_contain_text("read() is not there yet: run the cell that defines it")
    shown = _run(page.locator("div.live").first)
    right = re.findall(r"([\d.]+) % of the test digits", "".join(part["text"] for part in shown))
    assert len(right) > 3 and float(right[-1]) > 93
    strokes = {
        1: [(112, 30), (112, 190)],
        0: [(112, 25), (65, 70), (60, 150), (112, 200), (160, 150), (155, 70), (112, 25)],
        7: [(60, 35), (165, 35), (100, 195)],
    }
    for digit, points in strokes.items():
        play.get_by_role("button", name="Clear").click()
        box = play.locator("canvas").bounding_box()
        for at, (x, y) in enumerate(points):
            page.mouse.move(box["x"] + x, box["y"] + y, steps=5)
            if not at:
                page.mouse.down()
        page.mouse.up()
        playwright.expect(play.locator(".say")).to_contain_text("It is a")
        assert f"It is a {digit}" in play.inner_text()


# All notebooks take minutes; that of C needs what stands for a compiler there.
@pytest.mark.parametrize("chapter", _some_slow("5_library"))
def test_a_notebook_runs_in_jupyterlite(page: Any, chapter: str) -> None:
    page.set_viewport_size({"width": 1200, "height": 20_000})  # cells out of sight are not drawn
    page.goto(f"/lab/notebooks/index.html?path={chapter}.ipynb")
    page.wait_for_selector(".jp-CodeCell")
    for _ in range(5):  # JupyterLite does nothing if the menu is quicker than the notebook
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
        try:
            page.wait_for_function(f"{FIRST_PROMPT} !== '[ ]:'", timeout=20_000)
            break
        except playwright.TimeoutError:
            page.keyboard.press("Escape")  # a dialog may ask for a kernel
    # The file holds the numbers of an earlier run, but for its first cell, and cells are drawn one by one: the run is
    # over when all of them are there with a number, or an error stopped it.
    cells = json.loads((SITE / "lab/files" / f"{chapter}.ipynb").read_text())["cells"]
    page.wait_for_function(
        """count => {
            const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.innerText.trim());
            const numbered = prompts.filter(prompt => /^\\[\\d+\\]:$/.test(prompt));
            return numbered.length === count || document.querySelector('[data-mime-type*=error]');
        }""",
        arg=sum(cell["cell_type"] == "code" for cell in cells),
        timeout=300_000,
    )
    assert page.locator("[data-mime-type*=error]").count() == 0
    drawn = page.locator(".jp-RenderedMarkdown img").evaluate_all("drawings => drawings.map(each => each.naturalWidth)")
    assert all(drawn) and len(drawn) == sum("data:image" in "".join(cell["source"]) for cell in cells)
