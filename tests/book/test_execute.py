"""Execution of pages in fresh kernels: reruns that change no byte, pages that fail, nbval over damaged notebooks."""

import importlib.util
import json
import os
import re

import pytest
from nbval import plugin

from lib import claims
from lib.book import execute, pages

pytestmark = pytest.mark.slow


def test_a_rerun_changes_no_byte(executed, capsys):
    before = {name: executed.read(f"book/paper/{name}.ipynb") for name in ("one", "two")}
    assert executed.execute(force=True) == [] and capsys.readouterr().out.count("executed in") == 2
    assert {name: executed.read(f"book/paper/{name}.ipynb") for name in before} == before
    assert executed.execute() == [] and capsys.readouterr().out == ""  # there is nothing to do


def test_an_edit_in_prose_keeps_the_outputs(executed, capsys):
    before = json.loads(executed.read("book/paper/one.ipynb"))
    executed.edit("book/paper/one.md", "Some prose.", "Better prose.")
    assert executed.execute() == [] and "prose changed, outputs kept" in capsys.readouterr().out
    after = json.loads(executed.read("book/paper/one.ipynb"))
    assert any("Better prose." in pages.text(cell) for cell in after["cells"])
    assert [cell.get("outputs") for cell in before["cells"]] == [cell.get("outputs") for cell in after["cells"]]
    assert executed.stale() == {} and pages.paired(executed.page("one"))


def test_an_edit_while_the_page_runs_leaves_it_stale(executed):
    """The page edits its own .md here, as an author may while it runs: outputs belong to the code that made them."""
    edit = 'from pathlib import Path; md = Path("one.md"); md.write_text(md.read_text().replace("* width", "* 1 * width"))'
    executed.edit("book/paper/one.md", "* width)", f"* width); {edit}")
    assert executed.execute("one") == [] and executed.stale()["paper/one"] == ["its code changed"]


def test_a_damaged_notebook_is_made_again(executed):
    before = executed.read("book/paper/one.ipynb")
    executed.write("book/paper/one.ipynb", before[:700])
    assert executed.execute() == [] and executed.read("book/paper/one.ipynb") == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("* width)", "* width + 1)", "paper/one failed: one-width: measured 'not reproduced'"),  # a regression
        ("* width)", '* width)\nraise ValueError("no\\nway")', "paper/one failed: ValueError: no\nway"),  # the sentence first
        ("* width)", "* width); object()", "paper/one: cell 3 shows a memory address"),
        ("* width)", "* width); import sys; print('noise', file=sys.stderr)", "paper/one: cell 3 writes to stderr: noise"),
        ("* width)", "* width); import os; os._exit(9)", "paper/one failed: its kernel died"),
        ("* width)", "* width); import urllib.request as u; u.urlopen('http://a.org')", "asked the network for a.org"),
    ],
)
def test_a_page_that_fails_says_why_and_nothing_is_written(executed, old, new, message):
    before = executed.read("book/paper/one.ipynb")
    executed.edit("book/paper/one.md", old, new)
    (sentence,) = executed.execute("one")
    assert message in sentence and (sentence.startswith("paper/one"))
    assert executed.read("book/paper/one.ipynb") == before


def test_a_failing_page_does_not_stop_the_others(executed):
    for name in ("one", "two"):
        executed.edit(f"book/paper/{name}.md", "* width)", "* width * (1 if 'alpha' in dir() else 2))")
    done = executed.run("execute")
    assert done.returncode == 2 and done.stderr.startswith("paper/two failed: two-width: measured")
    assert "Traceback" not in done.stderr
    assert list(executed.stale()) == ["paper/two"]


def test_a_notebook_that_is_saved_while_its_page_runs_is_kept(executed):
    saves = "from pathlib import Path; p = Path('one.ipynb'); p.write_text(p.read_text() + ' ')\ncheck("
    text = executed.read("book/paper/one.md")
    executed.write("book/paper/one.md", text.replace("check(", saves, 1))
    (sentence,) = executed.execute("one")
    assert "was saved while the page ran" in sentence and executed.read("book/paper/one.ipynb").endswith(" ")


def test_a_kernel_has_one_thread_this_library_and_no_network(tmp_path):
    found = execute.kernel_environment(tmp_path)
    assert found["OMP_NUM_THREADS"] == "1" and found["RACING_OFFLINE"] == "1"
    assert found["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path)


# --- nbval -----------------------------------------------------------------------------------------------------------


DAMAGES = {
    "record": ('"verdict": "reproduced"', '"verdict": "not reproduced"'),
    "text": ("[reproduced] one-width", "[not reproduced] one-width"),  # what readers see
    "number": ('"measured": 6.0', '"measured": 6.5'),
    "digits": ('"measured": 6.0', '"measured": 6.0000001'),
}


def test_nbval_notices_every_damage_but_the_last_digits(executed):
    whole = executed.read("book/paper/one.ipynb")
    for name, (old, new) in DAMAGES.items():
        assert old in whole
        executed.write(f"book/paper/{name}.ipynb", whole.replace(old, new))
    files = [f"book/paper/{name}.ipynb" for name in ("one", *DAMAGES)]
    done = executed.run("--nbval-lax", "--nbval-current-env", *files, module="pytest")
    failed = set(re.findall(r"^FAILED book/paper/(\w+)\.ipynb", done.stdout, re.M))
    assert failed == {"record", "text", "number"} and "Cell outputs differ" in done.stdout, done.stdout + done.stderr


def test_numbers_of_a_rerun_agree_within_their_noise_and_not_beyond(monkeypatch):
    for name in ("compare_outputs", "sanitize"):  # book/conftest.py replaces them; the end of this test restores them
        monkeypatch.setattr(plugin.IPyNbCell, name, getattr(plugin.IPyNbCell, name))
    spec = importlib.util.spec_from_file_location("conftest_of_the_book", pages.ROOT / "book" / "conftest.py")
    compare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compare)

    about = dict.fromkeys(("id", "page", "where", "claim", "reason"), "one") | {"verdict": "reproduced", "author": "paper"}
    sign = claims.Claim(**about, expect="> 0")
    stored = {"measured": 0.10, "interval": {"mean": 0.10, "low": 0.02, "high": 0.18, "seeds": 5}}
    assert compare.agree(sign, stored, {"measured": 0.119}) and not compare.agree(sign, stored, {"measured": 0.121})
    assert compare.agree(sign, {"measured": 0.10}, {"measured": 0.1049})
    assert not compare.agree(sign, {"measured": 0.10}, {"measured": 0.1051})
    assert compare.agree(claims.Claim(**about, expect="< 1"), {"measured": 0.1}, {"measured": 0.34})
