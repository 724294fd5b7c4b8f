"""`python -m lib run`: papermill rows with provenance, pages that fail, recorded runs, damaged rows."""

import json
import subprocess

import pytest

from lib import claims
from lib.book import freshness, pages, parameters, runs
from lib.files import Problem

SETTINGS = {"width": 4, "name": "x", "seed": 0}


def row(**changes) -> dict:
    good = {"page": "paper/two", "run": "abc123", "parameters": SETTINGS, "status": "finished", "seconds": 2.0}
    good |= {"results": {"two-width": {"id": "two-width", "measured": 8.0, "verdict": "not reproduced"}}}
    return good | {"fingerprint": "f", "device": "cpu", "finished": "2026-01-01T00:00:00+00:00", "machine": "m"} | changes


def put(repository, name: str, content) -> None:
    repository.write(f"_runs/paper/two/{name}.json", content if isinstance(content, str) else json.dumps(content))


# --- runs in a kernel ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_leaves_a_notebook_and_a_row_with_its_provenance(executed):
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(executed.root), *command], check=True)
    page, text = executed.page("two"), "'); raise SystemExit('"  # text that looks like code stays text
    made = runs.run(page, SETTINGS | {"name": text})
    path = runs.path_of(page, made["run"])
    assert json.loads(path.read_text(encoding="utf-8")) == made and path.with_suffix(".ipynb").exists()
    assert made["status"] == "finished" and made["parameters"] == SETTINGS | {"name": text}
    # parameters that are not the book's: the verdict is measured, not enforced
    assert made["results"]["two-width"] == {"id": "two-width", "measured": 8.0, "verdict": "not reproduced"}
    head = subprocess.run(["git", "-C", str(executed.root), "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert head.startswith(made["commit"]) and len(made["commit"]) >= 7
    assert made["seconds"] > 0 and made["fingerprint"] and "cores" in made["machine"] and "GB" in made["machine"]
    assert made["device"] == "cpu" and made["python"] and made["versions"].keys() >= {"torch", "numpy", "scipy"}
    executed.write("lib/new.py", "")
    executed.edit("lib/gamma.py", "2.0", "2.5")
    assert runs.commit(executed.root).endswith("-dirty")


@pytest.mark.slow
def test_the_command_prints_the_run_beside_the_book_and_record_keeps_it(executed):
    done = executed.run("run", "paper/two", "-p", "width=4")
    assert done.returncode == 0 and "two-width" in done.stdout and "1 of 2 verdicts are the book's" in done.stdout, done.stderr
    (made,) = runs.rows(executed.page("two"))[0]
    again = executed.run("results", made["run"][:6])
    assert again.stdout == done.stdout
    kept = executed.run("record", made["run"][:6])
    assert kept.returncode == 0 and f"recorded as book/paper/recorded/two-{made['run']}.json" in kept.stdout
    assert "has no {recorded} box yet" in kept.stdout
    (recorded,) = runs.recorded(executed.page("two"))
    assert recorded == made | {"current": True}
    executed.edit("lib/gamma.py", "2.0", "2.5")
    assert not runs.recorded(executed.page("two"))[0]["current"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "first"),
    [
        ('raise ValueError("on purpose")', "ValueError: on purpose"),
        ("import os; os._exit(9)", "the kernel died"),
        ("import time; time.sleep(60)", "a cell took longer than 5 seconds"),
    ],
)
def test_a_page_that_fails_leaves_a_row_with_its_last_sentence_first(executed, code, first):
    executed.edit("book/paper/two.md", 'check("two-width"', f'{code}\ncheck("two-width"')
    made = runs.run(executed.page("two"), SETTINGS, timeout=5)
    assert made["status"] == "failed" and made["error"].splitlines()[0].startswith(first)
    assert runs.rows(executed.page("two"))[0] == [made] and "two-width" not in made["results"]
    with pytest.raises(Problem, match="failed; only finished runs are recorded"):
        runs.record(made["run"], executed.root)


@pytest.mark.slow
def test_a_run_does_not_pass_off_recorded_numbers_as_its_own(executed):
    executed.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: recorded\n  finding: reproduced")
    executed.edit("book/paper/two.md", "check(", "check.recorded(")
    found = {name: {"measured": value, "verdict": "reproduced"} for name, value in (("two-width", 6.0), ("two-parts", 3.0))}
    executed.write("book/paper/recorded/two-abc.json", json.dumps(row(results=found)))
    page = executed.page("two")
    assert runs.run(page, parameters.resolve(page, {}))["results"] == {}  # shown on the page, not measured by the run


@pytest.mark.slow
def test_a_run_keeps_the_numbers_of_its_figure_and_the_page_finds_them_once_recorded(executed):
    keeps = 'check.keep("curve", [1.0, width])\nprint(check.kept("curve"))\ncheck("two-width"'
    executed.edit("book/paper/two.md", 'check("two-width"', keeps)
    page = executed.page("two")
    made = runs.run(page, SETTINGS)
    assert made["kept"] == {"curve": [1.0, 4]} and runs.run(page, parameters.resolve(page, {}))["kept"] == {}
    runs.record(made["run"], executed.root)
    before = freshness.claims_digest(page)
    assert claims.on_page(page.name, book=executed.root / "book").kept("curve") == [1.0, 4]
    executed.edit(f"book/paper/recorded/two-{made['run']}.json", "1.0,", "2.0,")
    assert freshness.claims_digest(page) != before  # the page draws them, so it is stale


@pytest.mark.slow
def test_plain_papermill_works(executed):
    done = executed.run("book/paper/one.ipynb", "out.ipynb", "-p", "width", "5", "--cwd", "book/paper", module="papermill")
    assert done.returncode == 0, done.stderr
    assert claims.records(json.loads(executed.read("out.ipynb")))["one-width"]["measured"] == 10.0


# --- rows ------------------------------------------------------------------------------------------------------------


def test_the_same_run_has_the_same_name(repository):
    page = repository.page("two")
    name = runs.name_of(page, SETTINGS)
    assert name == runs.name_of(page, SETTINGS) != runs.name_of(page, SETTINGS | {"width": 5})
    repository.edit("book/paper/two.md", "value() * width", "value() * width * 1")
    assert runs.name_of(page, SETTINGS) != name


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(row())[:60],  # cut short
        "",
        row(status="almost"),
        row(results={"two-width": {"measured": "x", "verdict": "reproduced"}}),
        row(run="../evil"),
    ],
)
def test_a_damaged_row_is_not_counted_and_named(repository, content):
    put(repository, "damaged", content)
    put(repository, "abc123", row())
    page = repository.page("two")
    assert runs.rows(page) == ([row()], ["damaged.json"])
    assert not runs.finished(page, "damaged") and runs.finished(page, "abc123")


def test_a_failed_run_never_takes_the_place_of_a_finished_one(repository):
    page = repository.page("two")
    runs.write_row(page, row(status="failed", error="first"))
    runs.write_row(page, row())
    runs.write_row(page, row(status="failed", error="later"))
    assert runs.rows(page)[0] == [row()]


def test_a_full_disk_leaves_what_was_there(repository, monkeypatch):
    from pathlib import Path

    page = repository.page("two")
    runs.write_row(page, row())
    half = Path.write_text

    def full(path, text, **options):
        half(path, text[:20], **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(Problem, match="No space left on device.*what was there before is untouched"):
        runs.write_row(page, row(seconds=3.0))
    monkeypatch.undo()
    assert runs.rows(page)[0] == [row()] and len(list(runs.path_of(page, "x").parent.iterdir())) == 1


def test_a_run_is_found_by_the_beginning_of_its_name(repository):
    put(repository, "abc123", row())
    put(repository, "abd", row(run="abd"))
    assert runs.find_row("abc", repository.root)["run"] == "abc123"
    for name, count in (("ab", 2), ("zzz", 0), ("../abc", 0)):
        with pytest.raises(Problem, match=f"'{name}' names {count} runs"):
            runs.find_row(name, repository.root)


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: page.name)
def test_recorded_runs_of_the_book_are_whole_and_say_where_they_come_from(page):
    for one in claims.recorded_rows(page.name):
        assert one["page"] == page.name and one["status"] == "finished" and one["results"]
        assert one["machine"] and one["seconds"] > 0 and one["parameters"]
