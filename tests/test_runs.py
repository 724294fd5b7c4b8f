"""`python -m lib run`, presets, devices, plain papermill."""

import json

import pytest
import torch

from lib import pages, parameters, runs


def rows(repository):
    return [json.loads(path.read_text()) for path in sorted((repository.root / "_runs").glob("**/*.json"))]


def test_a_run_writes_a_notebook_and_a_row(executed):
    done = executed.run("run", "paper/one", "-p", "width=4")
    assert done.returncode == 0, done.stderr
    (row,) = rows(executed)
    assert row["status"] == "finished" and row["parameters"] == {"width": 4, "name": "x"}
    # other parameters than the book's: the verdict is recorded, not enforced
    assert row["results"]["one-width"] == {"id": "one-width", "measured": 8.0, "verdict": "not reproduced"}
    assert row["seconds"] > 0 and row["versions"]["torch"] and row["fingerprint"]
    assert (executed.root / "_runs/paper/one" / f"{row['run']}.ipynb").exists()
    assert "not reproduced" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paper/one", "-p", "widht=4"), "did you mean 'width'"),
        (("paper/one", "-p", "width=four"), "'width' must be int"),
        (("paper/one", "-p", "width=40"), "must lie in [1, 10]"),
        (("paper/one", "-p", "width"), "NAME=VALUE"),
        (("paper/three",), "there is no page"),
        (("../paper/one",), "there is no page"),
        (("/etc/passwd",), "there is no page"),
        (("paper/one", "--preset", "huge"), "no preset 'huge'"),
        (("paper/one", "--preset", "paper"), "no 'paper' preset for paper/one"),
        (("paper/one", "--device", "tpu"), "no device 'tpu'"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(executed, arguments, message):
    done = executed.run("run", *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (executed.root / "_runs").exists()


def test_text_that_looks_like_code_stays_text(executed):
    text = "'); raise SystemExit('"
    assert executed.run("run", "paper/two", "-p", f"name={text}").returncode == 0
    (row,) = rows(executed)
    assert row["parameters"]["name"] == text and row["status"] == "finished"


def test_a_failing_run_keeps_its_traceback(executed):
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


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_every_preset_of_the_book_is_valid(page):
    for name in runs.PRESETS:
        try:
            settings = runs.settle(page, {}, name)
        except runs.RunError as error:
            assert name == "paper" and "no 'paper' preset" in str(error)  # a page may already have the paper's size
            continue
        assert list(settings) == list(parameters.of_page(page.markdown))


def test_plain_papermill_works(executed):
    done = executed.run("book/paper/one.ipynb", "out.ipynb", "-p", "width", "5", "--cwd", "book/paper", module="papermill")
    assert done.returncode == 0, done.stderr
    from lib import claims

    measured = claims.records(json.loads(executed.read("out.ipynb")))
    assert measured["one-width"]["measured"] == 10.0
