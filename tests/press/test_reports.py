"""Runs to look at: reports, comparisons, pictures of sweeps, tables that fit, in a real browser with the network off."""

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from lib.press import claims, pages
from lib.press.errors import Problem, RunError
from lib.press.notebooks import nursery
from lib.press.reports import commands as reporting
from lib.press.reports import compare, facts, progress, sheet, sweep, table
from lib.press.reports import run as report
from lib.press.workbench import browser as installed
from lib.press.workbench import runs
from tests.traffic import Traffic

pytestmark = pytest.mark.usefixtures("forks")  # but for the one on a terminal, which starts a process like a reader's
BROWSER = installed.find()
PAGE = """
# A *page* with everything

```{glance}
:paper: A paper
```

```{claims}
```

```{code-cell} ipython3
:tags: [parameters]
gain: float = 2.0   # how strong [0.1, 100]
seed: int = 0       # first seed [0, 1000]
kind: str = "a"     # which {a, b}
```

```{parameters}
```

```{code-cell} ipython3
:tags: [hide-input]
import random
import matplotlib.pyplot as plt
from lib.press import claims
check = claims.on_page("paper/one")
draw = random.Random(seed).gauss(0, 0.05)
```

The gain enters as in Eq. {eq}`eq-gain`, twice, here {glue:text}`one-gain`.

$$
y = 2 g + \\epsilon < \\infty
$$ (eq-gain)

```{code-cell} ipython3
---
mystnb:
  figure:
    name: fig-one
    caption: A line, after Eq. {eq}`eq-gain`.
  image:
    alt: A straight line that rises from zero.
---
plt.plot([0, gain]);
```

```{code-cell} ipython3
:tags: [nbval-check-output]
check("one-gain", 2 * gain + draw)
check("one-parts", {"z": gain, "a & b": gain / 2})
check("one-yes", gain < 3)
```
"""
CLAIM = """- id: {id}
  page: one
  author: paper
  where: Eq. 1
  claim: {claim}
  expect: "{expect}"
  reason: exact
  verdict: reproduced
"""


@pytest.fixture(scope="module")
def reported(executed_template, tmp_path_factory, nursed):
    """A repository with a page that has everything, executed, one run of it and a sweep over gain and seed."""
    made = executed_template.copy(tmp_path_factory.mktemp("reports") / "repository")
    header = made.read("book/paper/one.md").split("---\n")[1]
    made.write("book/paper/one.md", f"---\n{header}---\n{PAGE}")
    entries = (
        ("one-gain", "Twice $g < 3$, give or take.", "= 4"),
        ("one-parts", "Two parts.", "< 3"),
        ("one-yes", "It is small.", "true"),
    )
    mine = "".join(CLAIM.format(id=i, claim=c, expect=e) for i, c, e in entries).replace('"= 4"', '"= 4"\n  tolerance: 10 %')
    two = made.read("book/paper/claims.yml").partition("- id: two-width")
    made.write("book/paper/claims.yml", f"title: A paper\nclaims:\n{mine}{two[1]}{two[2]}")
    with nursery.used():  # the page draws
        done = made.run("execute", "paper/one")
        assert done.returncode == 0, done.stderr
        made.ran = made.run("run", "paper/one", "-p", "gain=5", COLUMNS="70")
        assert made.ran.returncode == 0, made.ran.stderr
        made.swept = made.run("sweep", "paper/one", "--grid", "gain=1,2,40", "--grid", "seed=0:2")
        assert made.swept.returncode == 0, made.swept.stderr
    return made


@pytest.fixture(scope="module")
def chromium():
    if BROWSER is None:
        pytest.skip(installed.NONE_FOUND)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(installed.FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def visit(chromium, path, width=1300, **options):
    """Open a file; whatever is asked beyond it, and every error, is a problem."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
    tab, problems = context.new_page(), []
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    allowed = (path.as_uri(), "data:", "blob:")
    tab.on("request", lambda request: None if request.url.startswith(allowed) else problems.append(request.url))
    Traffic(tab).open(path.as_uri())
    yield tab, problems
    context.close()


def page_of(repository):
    return pages.Page("paper/one", repository.root)


def rows_of(repository):
    return [row for row in runs.rows(page_of(repository)) if row["status"] == "finished"]


def row_with(repository, **wanted):
    return next(row for row in rows_of(repository) if wanted.items() <= row["parameters"].items())


def report_of(repository, **wanted):
    return repository.root / "_runs/paper/one" / f"{row_with(repository, **wanted)['run']}.html"


# --- one run ---------------------------------------------------------------------------------------------------------


def test_a_run_prints_numbers_beside_verdicts_and_the_books_value(reported):
    lines = reported.ran.stdout.splitlines()
    assert all(len(line) <= 70 for line in lines if line.startswith(("*", "  ")))
    row = next(line for line in lines if "one-gain" in line)
    assert row.startswith("* not reproduced") and "10.05" in row and "4.047" in row and "± 10 %" in row
    assert "  verdict" in reported.ran.stdout and "2.5 … 5" in next(line for line in lines if "one-parts" in line)
    assert "0 of 3 verdicts are the book's; not so: one-gain, one-parts, one-yes." in reported.ran.stdout
    assert re.search(r"finished in [\d.]+ s: _runs/paper/one/[0-9a-f]+\.html, \.ipynb and \.json", reported.ran.stdout)


def test_every_run_leaves_a_report_that_opens_anywhere(reported, chromium):
    assert len(list((reported.root / "_runs/paper/one").glob("*.html"))) == len(rows_of(reported)) + 1  # and the sweep's
    path = report_of(reported, gain=5.0)
    with visit(chromium, path) as (tab, problems):
        tab.wait_for_function("document.querySelectorAll('.math:not(:has(mjx-container))').length == 0", timeout=20000)
        assert tab.locator("mjx-container").count() >= 2 and tab.locator("[data-mjx-error]").count() == 0
        assert tab.locator("h1").first.inner_text() == "A page with everything"
        first = tab.locator("table").first
        assert first.locator("th").all_inner_texts() == [
            "claim",
            "tolerance",
            "book",
            "this run",
            "verdict in the book",
            "verdict here",
        ]
        cells = [row.locator("td").all_inner_texts() for row in first.locator("tbody tr").all()]
        assert [cell[1:] for cell in cells] == [
            ["± 10 %", "4.047", "10.05", "reproduced", "not reproduced"],
            ["< 3", "z: 2\na & b: 1", "z: 5\na & b: 2.5", "reproduced", "reproduced in part"],
            ["holds", "yes", "no", "reproduced", "not reproduced"],
        ]
        assert first.locator("tr.apart").count() == 3
        text = tab.locator("main").inner_text()
        assert "gain=5.0" in text and "twice, here 10.05" in text and "{glue" not in text and "{claims}" not in text
        figure = tab.locator("figure#fig-one")
        assert figure.locator("img").get_attribute("alt") == "A straight line that rises from zero."
        assert figure.inner_text() == "Figure 1. A line, after Eq. (1)."
        assert figure.locator("img").evaluate("i => i.complete && i.naturalWidth > 100")
        assert tab.locator("table.check").count() == 3
        assert problems == []
    for width, scheme in ((400, "light"), (400, "dark")):
        with visit(chromium, path, width, color_scheme=scheme) as (tab, problems):
            assert tab.evaluate("document.documentElement.scrollWidth") <= 400
            ink, paper = (tab.evaluate(f"getComputedStyle(document.body).{one}") for one in ("color", "backgroundColor"))
            assert ink != paper and (paper == "rgb(255, 255, 255)") == (scheme == "light")
            assert problems == []


def test_a_failed_run_has_a_report_with_its_traceback(reported, chromium):
    page = page_of(reported)
    row = row_with(reported, gain=5.0) | {"status": "failed", "error": "ValueError: <on purpose>", "results": {}}
    notebook = json.loads((reported.root / f"_runs/paper/one/{row['run']}.ipynb").read_text())
    html = report.report(facts.Run(row["run"], page, row, notebook))
    assert "This run failed." in html and "ValueError: &lt;on purpose&gt;" in html and "This run measured no claim." in html


def test_the_notebook_of_a_run_can_be_read(reported):
    notebook = json.loads(report_of(reported, gain=5.0).with_suffix(".ipynb").read_text())
    shown = re.sub(
        r"<!--.*?-->", "", "\n".join(pages.text(c) for c in notebook["cells"] if c["cell_type"] == "markdown"), flags=re.S
    )
    assert "{" not in shown and "twice, here 10.05" in shown
    assert "| `gain` | `2.0` | how strong |" in shown and "**not reproduced**" in shown


@pytest.mark.parametrize("command", [("report", "{run}"), ("compare", "book", "{run}"), ("run", "paper/one", "-p", "gain=5")])
def test_open_hands_the_report_to_the_browser(reported, tmp_path, command):
    seen = tmp_path / "seen"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    script.chmod(0o755)
    name = row_with(reported, gain=5.0)["run"]
    done = reported.run(*(part.format(run=name[:10]) for part in command), "--open", BROWSER=f"{script} %s")
    assert done.returncode == 0, done.stderr
    assert seen.read_text().startswith("file://") and name[:10] in seen.read_text()


# --- two runs --------------------------------------------------------------------------------------------------------


def test_a_run_and_the_book_side_by_side(reported, chromium):
    name = row_with(reported, gain=5.0)["run"]
    done = reported.run("compare", "book", name[:8], COLUMNS="72")
    assert done.returncode == 0, done.stderr
    assert f"gain: 2.0 in the book, 5.0 in run {name[:8]}" in done.stdout
    row = next(line for line in done.stdout.splitlines() if "one-gain" in line)
    assert row.startswith("* one-gain") and "4.047 ✓" in row and "10.05 ✗" in row and len(row) <= 72
    path = reported.root / done.stdout.rsplit(": ", 1)[1].strip()
    with visit(chromium, path) as (tab, problems):
        tab.wait_for_function("document.querySelectorAll('.math:not(:has(mjx-container))').length == 0", timeout=20000)
        both = tab.locator("figure .pair").first
        assert both.locator("h4").all_inner_texts() == ["the book", f"run {name[:8]}"]
        boxes = [image.bounding_box() for image in both.locator("img").all()]
        assert len(boxes) == 2 and boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        assert len(set(both.locator("img").evaluate_all("all => all.map(i => i.src)"))) == 2
        assert "0 of 3 verdicts agree" in tab.locator("main").inner_text()
        assert problems == []
    with visit(chromium, path, 400) as (tab, problems):
        boxes = [image.bounding_box() for image in tab.locator("figure .pair img").all()]
        assert boxes[0]["x"] == boxes[1]["x"] and tab.evaluate("document.documentElement.scrollWidth") <= 400
        assert problems == []


def test_two_runs_that_are_the_same_and_runs_that_do_not_compare(reported, monkeypatch):
    monkeypatch.setenv("RACING_RUNS", str(reported.root / "_runs"))
    one, other = (row_with(reported, gain=2.0, seed=seed)["run"] for seed in (0, 1))
    left, right = compare.pair(one, other, reported.root)
    assert compare.settings(left, right) == {"seed": (0, 1)}
    assert "The same picture." in compare.report(left, right)
    with pytest.raises(RunError, match="names 0 runs"):
        compare.pair("zzzz", other, reported.root)
    with pytest.raises(RunError, match="the book is compared with a run"):
        compare.pair("book", "book", reported.root)
    with pytest.raises(RunError, match="is not the name of a run"):
        facts.find("..", reported.root)


def test_a_recorded_run_compares_by_its_numbers():
    recorded = next(path for path in sorted((pages.ROOT / "book").glob("*/recorded/*.json")))
    name = json.loads(recorded.read_text())["run"]
    one, other = compare.pair("book", name)
    html = compare.report(one, other)
    assert f"run {name[:8]}" in html and "not drawn" in html


# --- sweeps ----------------------------------------------------------------------------------------------------------


def test_a_sweep_leaves_a_report_with_a_picture_for_each_claim(reported, chromium):
    path = reported.root / re.search(r"a report with pictures: (\S+)", reported.swept.stdout)[1]
    with visit(chromium, path) as (tab, problems):
        text = tab.locator("main").inner_text()
        assert "gain = 1.0, 2.0, 40.0; seed = 0, 1" in text and "a sweep of 6 points" in text
        pictures = tab.locator("figure img").evaluate_all("all => all.map(i => [i.alt, i.naturalWidth])")
        assert len(pictures) == 3 and all(width > 400 for _, width in pictures)
        assert pictures[0][0].startswith("one-gain against gain, means 1.0: 2") and "tolerated: ± 10 %" in pictures[0][0]
        counts = tab.locator("table").first.locator("tbody tr").first.locator("td").last.inner_text()
        assert counts == "4 × not reproduced\n2 × reproduced"
        links = tab.locator("table").last.locator("a").evaluate_all("all => all.map(a => a.href)")
        assert len(links) == 6 and all(Path(link.removeprefix("file://")).exists() for link in links)
        assert problems == []


def test_the_picture_shows_means_range_tolerance_and_the_book(reported):
    page, rows = page_of(reported), [row for row in rows_of(reported) if row["parameters"]["gain"] != 5.0]
    fig = sweep.draw(page, rows, "one-gain", "gain", "seed")
    (ax,) = fig.axes
    line = next(line for line in ax.lines if len(line.get_xdata()) == 3)
    drawn = {row["parameters"]["gain"]: [] for row in rows}
    for row in rows:
        drawn[row["parameters"]["gain"]].append(row["results"]["one-gain"]["measured"])
    for gain, mean in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert mean == pytest.approx(sum(drawn[gain]) / 2, rel=1e-6)
    labels = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    book = labels["the book"].get_xydata()[0]
    assert tuple(book) == pytest.approx((2.0, 4.047), abs=1e-3)
    extents = labels["tolerated"].get_extents().transformed(ax.transData.inverted())
    assert (extents.y0, extents.y1) == pytest.approx((3.6, 4.4), rel=1e-6)
    assert ax.get_xscale() == "log" and ax.get_xlabel() == "gain"
    band = max((c for c in ax.collections if type(c).__name__ != "PathCollection"), key=lambda c: len(c.get_paths()[0].vertices))
    ys = band.get_paths()[0].vertices[:, 1]
    assert ys.min() == pytest.approx(min(drawn[1.0]), rel=1e-6) and ys.max() == pytest.approx(max(drawn[40.0]), rel=1e-6)
    sweep.picture(fig)


def test_parts_get_colours_and_answers_get_yes_and_no(reported):
    page, rows = page_of(reported), rows_of(reported)
    (ax,) = sweep.draw(page, rows, "one-parts", "gain", "seed").axes
    assert {"z", "a & b", "the book", "tolerated"} <= set(ax.get_legend_handles_labels()[1])
    (ax,) = sweep.draw(page, rows, "one-yes", "gain", "seed").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["no", "yes"]


def test_plot_writes_a_picture_and_says_what_it_shows(reported, tmp_path):
    done = reported.run("plot", "paper/one", "--claim", "one-gain", "--against", "gain", "--group", "seed")
    assert done.returncode == 0, done.stderr
    assert (
        "one-gain against gain, means 1.0: 2" in done.stdout and "7 runs: _runs/paper/one/plot-one-gain-gain.png" in done.stdout
    )
    assert (reported.root / "_runs/paper/one/plot-one-gain-gain.png").read_bytes().startswith(b"\x89PNG")
    done = reported.run(
        "plot", "paper/one", "--claim", "one-parts", "--against", "seed", "-p", "gain=2", "-o", str(tmp_path / "a.svg")
    )
    assert done.returncode == 0 and "<svg" in (tmp_path / "a.svg").read_text(), done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--claim", "one-gian", "--against", "gain"), "has no claim 'one-gian'; did you mean 'one-gain'?"),
        (("--claim", "one-gain", "--against", "gian"), "has no parameter 'gian'; did you mean 'gain'?"),
        (("--claim", "one-gain", "--against", "kind"), "all runs of paper/one have the same kind (what varies: gain, seed)"),
        (("--claim", "one-gain", "--against", "gain", "-p", "gain=7"), "there are no such finished runs"),
        (("--claim", "one-gain", "--against", "gain", "-o", "x.gif"), "a picture is a .png, .svg or .pdf"),
        (("--claim", "one-gain", "--against", "gain", "-o", "no/x.png"), "there is no folder no"),
    ],
)
def test_plot_says_in_a_sentence_what_is_wrong(reported, arguments, sentence):
    done = reported.run("plot", "paper/one", *arguments)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [50, 80, 132])
def test_results_fit_the_terminal(reported, columns):
    done = reported.run("results", "paper/one", COLUMNS=str(columns))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and max(map(len, lines)) <= columns
    assert lines[0].split()[:5] == ["run", "gain", "seed", "verdicts", "seconds"] and "kind" not in lines[0]
    assert len([line for line in lines if re.match(r"[0-9a-f]{8}  ", line)]) == 7
    assert ("more claims: --claim ID" in done.stdout) == (columns == 50)
    if columns == 132:
        row = next(line for line in lines if " 5.0 " in line)
        assert "1◐ 2✗" in row and "10.05 ✗" in row and "2.5 … 5 ◐" in row and "no ✗" in row


def test_results_show_chosen_claims(reported):
    done = reported.run("results", "paper/one", "--claim", "one-yes", COLUMNS="60")
    assert done.stdout.splitlines()[0].split()[-1] == "one-yes" and "one-gain" not in done.stdout
    done = reported.run("results", "paper/one", "--claim", "one-yess")
    assert done.returncode == 2 and "has no claim 'one-yess'; did you mean 'one-yes'?" in done.stderr


def test_results_go_whole_into_files(reported, tmp_path):
    import pandas

    assert reported.run("results", "paper/one", "--csv", str(tmp_path / "wide.csv")).returncode == 0
    wide = pandas.read_csv(tmp_path / "wide.csv")
    assert len(wide) == 7 and {"gain", "seed", "kind", "one-gain", "one-parts: z", "run", "fingerprint"} <= set(wide)
    assert reported.run("results", "paper/one", "--long", "--csv", str(tmp_path / "long.csv")).returncode == 0
    long = pandas.read_csv(tmp_path / "long.csv")
    assert len(long) == 7 * 4 and set(long["claim"]) == {"one-gain", "one-parts", "one-yes"}
    five = long[(long["gain"] == 5) & (long["claim"] == "one-parts")].set_index("part")
    assert five.loc["a & b", "measured"] == 2.5 and five.loc["z", "verdict"] == "reproduced in part"


def test_parquet_is_written_or_explained(reported, tmp_path, monkeypatch):
    class Table:
        def to_parquet(self, path, index):
            Path(path).write_bytes(b"PAR1")

    monkeypatch.setattr(reporting.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Problem, match="needs pyarrow, which is not installed"):
        reporting.write_parquet(tmp_path / "a.parquet", Table())
    monkeypatch.setattr(reporting.importlib.util, "find_spec", lambda name: True)
    reporting.write_parquet(tmp_path / "a.parquet", Table())
    assert (tmp_path / "a.parquet").read_bytes() == b"PAR1"
    with pytest.raises(Problem, match="there is no folder"):
        reporting.write_parquet(tmp_path / "no" / "a.parquet", Table())


def test_a_table_never_runs_over():
    body = [["a" * 30, "ein-langer-name", "0.123", "日本" * 9], ["b", "c", "d", "e"]]
    for room in (30, 45, 60, 200):
        lines = table.fitted(["x", "claim", "y", "z"], body, room, whole=1)
        assert all(table.length(line) <= room for line in lines)
        assert ("ein-langer-name" in lines[1]) == (room > 30)
    assert table.cut("abcdef", 4) == "abc…" and table.length("日本") == 4


# --- progress --------------------------------------------------------------------------------------------------------


def test_time_left_follows_an_earlier_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    told = progress.Progress("paper/one", 3, weights=[1.0, 8.0, 1.0], stream=StringIO())
    assert told.left() == pytest.approx(10.0) and told.share() == 0
    now[0] += 2.0  # twice as slow as then
    told.advance()
    assert told.share() == pytest.approx(0.1) and told.left() == pytest.approx(18.0)
    now[0] += 8.0
    assert told.left() == pytest.approx(10.0) and "cell 2 of 3, 10% done after 10 s, about 10 s left" in told.sentence()
    now[0] += 8.0
    told.advance()
    assert told.share() == pytest.approx(0.9) and told.left() == pytest.approx(2.0)


def test_time_left_without_an_earlier_run(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    told = progress.Progress("p", 4, expected=30.0, stream=StringIO())
    now[0] = 10.0
    assert told.left() == pytest.approx(20.0)
    told = progress.Progress("p", 4, stream=StringIO())
    assert told.left() is None
    now[0] = 15.0
    told.advance()
    assert told.left() == pytest.approx(15.0)
    assert [progress.spoken(s) for s in (3, 89, 120, 7200)] == ["3 s", "89 s", "2 min", "2.0 h"]


def test_progress_is_a_line_that_changes_on_a_terminal_and_rare_lines_elsewhere(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    for stream, wanted in ((Terminal(), 2), (StringIO(), 0)):
        with progress.Progress("paper/one", 2, stream=stream) as told:
            told.advance()
            told.advance()
        assert stream.getvalue().count("cell 2 of 2") == wanted
    assert "\n" not in stream.getvalue()
    monkeypatch.setattr(progress, "EVERY", 0.0)
    told = progress.Progress("paper/one", 2, stream=StringIO())
    told.advance()
    assert told.stream.getvalue().count("\n") == 1


def test_the_next_run_knows_how_long_each_cell_took(reported):
    page = page_of(reported)
    weights = progress.durations(page, runs.home(page.root) / page.name)
    assert len(weights) == len(pages.code(pages.source(page))) and max(weights) > 0


def test_a_run_on_a_terminal_says_how_far_it_is(reported):
    """Through a real pseudo-terminal: the line names cells and the time that is left, and is gone at the end."""
    import pty

    leader, follower = pty.openpty()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "RACING"))} | {"PYTHONPATH": str(reported.root)}
    command = [sys.executable, "-m", "lib", "run", "paper/one", "-p", "gain=5"]
    process = subprocess.Popen(command, cwd=reported.root, env=env, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    said, began = b"", time.monotonic()
    with contextlib.suppress(OSError):  # the terminal's end
        while time.monotonic() - began < 120 and (part := os.read(leader, 4096)):
            said += part
    os.close(leader)
    assert process.wait(60) == 0
    assert re.search(rb"paper/one: cell \d of 4, \d+% done after \d+ s, (about \d+ s left|nearly done)", said), said[-300:]
    assert said.rstrip().endswith(b"\x1b[K")


# --- the file itself -------------------------------------------------------------------------------------------------


def test_mathjax_is_inside_and_only_where_there_is_a_formula():
    with_formula, without = sheet.document("t", sheet.prose("$a<b$")), sheet.document("t", sheet.prose("a"))
    assert r"\(a&lt;b\)" in with_formula and "DecompressionStream" in with_formula and "DecompressionStream" not in without
    packed = re.search(r'type="text/plain">([^<]+)<', with_formula)[1]
    import gzip

    assert b"MathJax" in gzip.decompress(base64.b64decode(packed)) and len(without) < 20_000
    assert not re.search(r'(src|href)="(?!data:|#)', with_formula)


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_every_page_of_the_book_makes_a_report(page):
    html = report.report(facts.of_book(page))
    assert not re.search(r"\{(?:claims|glance|glue:text|parameters|recorded|answer|cite|eq|numref)\}", html)
    known = claims.of_page(page.name)
    assert all(f"<code>{name}</code>" in html for name in known)
    drawn = sum("image/png" in out.get("data", {}) for cell in pages.stored(page)["cells"] for out in cell.get("outputs", []))
    assert html.count("<figure") == drawn
