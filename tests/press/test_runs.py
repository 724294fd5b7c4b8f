"""`python -m lib run`, presets, devices, plain papermill."""

import json
import re

import pytest
import torch

from lib.press import claims, pages, parameters
from lib.press.trials import far
from lib.press.workbench import execution, runs


def rows(repository):
    return [json.loads(path.read_text()) for path in sorted((repository.root / "_runs").glob("**/*.json"))]


def test_a_run_writes_a_notebook_and_a_row(executed, forks):
    done = executed.run("run", "paper/one", "-p", "width=4")
    assert done.returncode == 0, done.stderr
    (row,) = rows(executed)
    assert row["status"] == "finished" and row["parameters"] == {"width": 4, "name": "x"}
    # other parameters than the book's: the verdict is recorded, not enforced
    assert row["results"]["one-width"] == {"id": "one-width", "measured": 8.0, "verdict": "not reproduced"}
    assert row["seconds"] > 0 and row["versions"]["torch"] and row["fingerprint"]
    assert (executed.root / "_runs/paper/one" / f"{row['run']}.ipynb").exists()
    assert "not reproduced" in done.stdout


def test_a_row_tells_where_it_comes_from(executed, forks):
    """Versions, hardware, seconds, and the sha256 of what the run really loaded, which the book's own run need not have."""
    loads = "from lib.data import datasets\nname == 'camera' and datasets.camera()\n"
    executed.edit("book/paper/two.md", "check = claims", loads + "check = claims")
    for file in ("camera.json", "camera.npz"):
        (executed.root / "data" / file).write_bytes((pages.ROOT / "data" / file).read_bytes())
    assert executed.run("run", "paper/two", "-p", "name=camera").returncode == 0
    (row,) = rows(executed)
    assert row["data"] == {"camera": json.loads(executed.read("data/camera.json"))["sha256"]}
    assert "cores" in row["machine"] and "GB" in row["machine"] and row["versions"]["numpy"] and row["python"]


def test_a_run_does_not_pass_off_recorded_numbers_as_its_own(executed, forks):
    executed.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: recorded\n  finding: reproduced")
    executed.edit("book/paper/two.md", "check(", "check.recorded(")
    (executed.root / "book/paper/recorded").mkdir()
    results = {
        name: {"id": name, "measured": value, "verdict": "reproduced"} for name, value in (("two-width", 6.0), ("two-parts", 3.0))
    }
    row = {"finished": "2026-01-01T00:00:00", "seconds": 600.0, "device": "cpu", "run": "abc", "results": results}
    row |= {"page": "paper/two", "parameters": {"width": 3}, "status": "finished", "fingerprint": "f"}
    executed.write("book/paper/recorded/two-abc.json", json.dumps(row))
    page = pages.find("paper/two", executed.root)
    assert (
        runs.run(page, {"width": 3, "name": "x"}, progress=False)["results"] == {}
    )  # shown on the page, not measured by the run
    assert runs.run(page, {"width": 4, "name": "x"}, progress=False)["results"]["two-width"]["measured"] == 8.0


def test_a_kernel_that_dies_leaves_a_row(executed):
    executed.edit("book/paper/two.md", 'check("two-width"', 'import os; os._exit(9)\ncheck("two-width"')
    done = executed.run("run", "paper/two")
    assert done.returncode == 1 and "Traceback" not in done.stdout
    (row,) = rows(executed)
    assert row["status"] == "failed" and "died" in row["error"].lower()


def test_claims_do_not_decide_what_a_run_measures(executed):
    page = pages.find("paper/two", executed.root)
    before = runs.code_fingerprint(page)
    executed.edit("book/paper/claims.yml", "= 6", "= 7")
    assert runs.code_fingerprint(page) == before
    executed.edit("lib/gamma.py", "2.0", "2.5")
    assert runs.code_fingerprint(page) != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paper/one", "-p", "widht=4"), "did you mean 'width'"),
        (("paper/one", "-p", "width=four"), "'width' must be int"),
        (("paper/one", "-p", "width=40"), "must lie in [1, 10]"),
        (("paper/one", "-p", "width"), "NAME=VALUE"),
        (("paper/one", "-p", "width={[]: 1}"), "no value: {[]: 1}"),
        (("paper/three",), "there is no page"),
        (("../paper/one",), "there is no page"),
        (("/etc/passwd",), "there is no page"),
        (("paper/one", "--preset", "huge"), "no preset 'huge'"),
        (("paper/one", "--preset", "paper"), "no 'paper' preset for paper/one"),
        (("paper/one", "--device", "tpu"), "no device 'tpu'"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(executed, arguments, message, forks):
    done = executed.run("run", *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (executed.root / "_runs").exists()


def test_text_that_looks_like_code_stays_text(executed, forks):
    text = "'); raise SystemExit('"
    assert executed.run("run", "paper/two", "-p", f"name={text}").returncode == 0
    (row,) = rows(executed)
    assert row["parameters"]["name"] == text and row["status"] == "finished"


def test_a_failing_run_keeps_its_traceback(executed, forks):
    executed.edit("book/paper/two.md", 'check("two-width"', 'raise ValueError("on purpose"); check("two-width"')
    done = executed.run("run", "paper/two")
    assert done.returncode == 1 and "on purpose" in done.stderr
    (row,) = rows(executed)
    assert row["status"] == "failed" and "ValueError: on purpose" in row["error"] and "two-width" not in row["results"]


def test_presets(executed):
    executed.write("book/presets.yml", "paper/one:\n  smoke: {width: 1}\n  paper: {width: ten}\n")
    page = pages.find("paper/one", executed.root)
    assert runs.settle(page, {}) == {"width": 3, "name": "x"}
    assert runs.settle(page, {}, "smoke") == {"width": 1, "name": "x"}
    assert runs.settle(page, {"width": "2"}, "smoke") == {"width": 2, "name": "x"}
    with pytest.raises(parameters.ParameterError, match="must be int"):
        runs.settle(page, {}, "paper")


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert runs.pick_device("auto") == "cpu"
    with pytest.raises(runs.RunError, match="no CUDA device"):
        runs.pick_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert runs.pick_device("auto") == "cuda" == runs.pick_device("cuda")


def test_a_page_gets_the_device_that_is_there(monkeypatch):
    page = pages.find("bias_learning/masks")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert runs.settle(page, {}, device="auto")["device"] == "cpu" == runs.settle(page, {"device": "auto"})["device"]
    for asked in ({"overrides": {}, "device": "cuda"}, {"overrides": {"device": "cuda"}}):
        with pytest.raises(runs.RunError, match="no CUDA device"):
            runs.settle(page, **asked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert runs.settle(page, {}, device="auto")["device"] == "cuda"
    small = pages.find("deep_linear/modes")
    assert "device" not in runs.settle(small, {}, device="auto")
    with pytest.raises(runs.RunError, match="runs on the CPU only"):
        runs.settle(small, {}, device="cuda")


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_every_page_has_all_presets_and_a_cost(page):
    for name in runs.PRESETS:
        settings = runs.settle(page, {}, name)
        assert list(settings) == list(parameters.of_page(page.markdown))
    assert re.search(r"second|minute|hour|day|own parameters", runs.presets(page)["cost"])


# Figures are drawn, small and once, but not laid out, which would take half of a page's time; at the book's size they are.
SKETCHES = (
    "import matplotlib, lib.press.plots.style; from matplotlib_inline.backend_inline import set_matplotlib_formats as show;"
    "matplotlib.rcParams.update({'figure.constrained_layout.use': False, 'savefig.bbox': None}); show('png', bbox_inches=None);"
    "del matplotlib, lib, show"
)


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_every_page_runs_as_smoke(page, tmp_path, monkeypatch):
    """With sizes that make no sense for the claims, a page must still run to its end, and quickly.

    A page that has a `device` runs on one that refuses to mix with the CPU (`trials.far`): what it would leave behind there,
    or draw elsewhere than on the CPU, is found without a GPU. On the CPU the same page runs at the book's own size (nbval).
    """
    monkeypatch.setenv("RACING_RUNS", str(tmp_path))
    settings, done, plain, begin = runs.settle(page, {}, "smoke"), tmp_path / "done", execution.traced, [SKETCHES]
    if "device" in settings:
        settings["device"] = far.DEVICE.type
        begin.append(f"from lib.press.trials import far; far.inhabit({str(done)!r}); del far")
    begin = [f"--IPKernelApp.exec_lines={line}" for line in begin]
    monkeypatch.setattr(execution, "traced", lambda report: [*plain(report), *begin])
    row = runs.run(page, settings, progress=False)  # without the processes around it, which others test
    assert row["status"] == "finished", row.get("error")
    assert "device" not in row["parameters"] or int(done.read_text()) > 40, "next to nothing ran on the device"
    assert json.loads((tmp_path / page.name / f"{row['run']}.json").read_text(encoding="utf-8")) == row
    here = {name for name, claim in claims.of_page(page.name).items() if claim.verdict != "recorded"}
    missing = here - set(row["results"])
    assert not missing, f"at this size the page does not look at {', '.join(sorted(missing))}"


def test_plain_papermill_works(executed):
    done = executed.run("book/paper/one.ipynb", "out.ipynb", "-p", "width", "5", "--cwd", "book/paper", module="papermill")
    assert done.returncode == 0, done.stderr
    measured = claims.records(json.loads(executed.read("out.ipynb")))
    assert measured["one-width"]["measured"] == 10.0


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("TWO = 2.0", "TWO = 2.0  # a remark", True),
        ("TWO = 2.0", '"""What it is."""\nTWO = 2.0', True),
        ("TWO = 2.0", "TWO = 2.5", False),
    ],
)
def test_a_recorded_run_is_of_its_code_not_of_its_comments(executed, old, new, same):
    page = pages.Page("paper/two", executed.root)
    before = runs.code_fingerprint(page)
    executed.edit("lib/gamma.py", old, new)
    assert (runs.code_fingerprint(page) == before) is same
