"""Setting up: exact pins, one-sentence errors, and the commands on a bare machine."""

import io
import os
import re
import subprocess
import sys
from importlib import metadata

import pytest

from lib.press import environment
from lib.press.bindery import building
from lib.press.environment import ROOT
from lib.press.rendering import generated
from lib.press.workbench import browser, installed


def test_every_requirement_is_an_exact_pin_and_is_met():
    lines = [line for line in environment.REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines)
    assert environment.unmet() == []


def test_everything_that_is_installed_by_the_pins_is_pinned():
    """No package comes in through a dependency without a version of its own."""
    from importlib.metadata import distribution

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    pinned, missing = {canonicalize_name(name) for name in environment.pins()}, set()
    for name in environment.pins():
        for need in map(Requirement, distribution(name).requires or []):
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            if wanted and canonicalize_name(need.name) not in pinned:
                missing.add(need.name)
    assert missing <= {"pip"}


def test_hash_ignores_comments_but_not_versions(monkeypatch, tmp_path):
    path = tmp_path / "requirements.txt"
    monkeypatch.setattr(environment, "REQUIREMENTS", path)
    path.write_text("# one\na==1\nb==2\n")
    first = environment.pins_hash()
    path.write_text("b==2\na==1\n")
    assert environment.pins_hash() == first
    path.write_text("b==2\na==1.0\n")
    assert environment.pins_hash() != first


def test_names_of_folders_tell_the_versions_that_packages_tell(monkeypatch, tmp_path):
    seen = installed.versions()
    told = {name: metadata.version(name) for name in environment.pins()}
    assert {name: seen[installed.plain(name)] for name in told} == told
    for place, names in {"a": ("one-1.0", "two_x-1.0", "two_x-2.0"), "b": ("one-3.0", "Three.y-4.0+cpu")}.items():
        for name in names:
            (tmp_path / place / f"{name}.dist-info").mkdir(parents=True)
            (tmp_path / place / f"{name}.dist-info" / "METADATA").write_text(f"Version: {name.partition('-')[2]}\n")
    (tmp_path / "a" / "half-1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "nothing"), str(tmp_path / "b")])
    assert installed.versions() == {"one": "1.0", "two-x": "", "half": "", "three-y": "4.0+cpu"}
    assert environment.unmet({"one": "1.0", "three-y": "4.0"}) == []
    wrong = environment.unmet({"one": "3.0", "four": "1", "half": "1.0"})
    assert wrong == ["one==3.0 (have 1.0)", "four==1 (have none)", "half==1.0 (have none)"]


def bare(repository, code: str, *arguments: str, **variables: str):
    """Run the command line as a bare interpreter would, after `code` has taken something away."""
    script = f"import sys; sys.path.insert(0, '.'); {code}; from lib.__main__ import main; sys.exit(main({list(arguments)!r}))"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RACING"))} | variables
    return subprocess.run(
        [sys.executable, "-c", script], cwd=repository.root, env=env, text=True, capture_output=True, timeout=120
    )


UNMET = "from lib.press import environment; environment.unmet = lambda: ['x']"


def test_a_missing_venv_module_is_one_sentence(repository):
    done = bare(repository, f"{UNMET}; sys.modules['ensurepip'] = None", "book")
    assert done.returncode == 2
    assert done.stderr.strip() == "Python's venv module is missing: install it (Debian, Ubuntu: `apt install python3-venv`)."


def test_no_network_is_one_sentence(repository):
    done = bare(repository, UNMET, "book", PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 2
    assert "could not be installed (is there a network" in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_the_set_up_shows_how_far_it_is():
    said = [f"Collecting p{i}==1.0 (from -r requirements.txt (line {i}))" for i in range(1, 46)]
    said += ["  Downloading p1-1.0.whl (3 kB)", "Installing collected packages: " + ", ".join(f"p{i}" for i in range(45))]
    log = io.StringIO()
    show = environment.Progress(45, log)
    for line in said:
        show(line)
    show.end()
    assert log.getvalue().splitlines() == ["  20 of 45: p20", "  40 of 45: p40", "  45 of 45: p45",
                                           "  unpacking 45 packages (about a minute) …"]  # fmt: skip
    live = io.StringIO()
    live.isatty = lambda: True
    show = environment.Progress(45, live)
    for line in said:
        show(line)
    assert live.getvalue().count("\r") == 46 and "45 of 45: p45" in live.getvalue() and "\n" not in live.getvalue()


def test_an_old_python_is_one_sentence(repository):
    done = bare(repository, f"{UNMET}; sys.version_info = (3, 9)", "book")
    assert done.returncode == 2 and "Python 3.11 or newer is needed" in done.stderr


def test_a_missing_browser_is_found_out(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    assert browser.ensure() is None
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    assert browser.find() is None


def test_the_command_line_explains_itself(executed, forks):
    done = executed.run("--help")
    for word in ("book", "test", "run", "pages", "data"):
        assert word in done.stdout
    listed = executed.run("pages")
    assert "paper/one" in listed.stdout and "width: int = 3" in listed.stdout and "fresh" in listed.stdout


def test_the_suite_ends_with_one_line_that_counts(executed, forks):
    executed.write("test_two.py", "import pytest\n\ndef test_good():\n    assert True\n\ndef test_bad():\n    assert False\n")
    done = executed.run("test", "test_two.py")
    assert done.returncode == 1
    assert done.stdout.strip().splitlines()[-1] == "1 passed, 1 failed"
    executed.write("test_two.py", "import nothing_like_this\n")
    done = executed.run("test", "test_two.py")
    assert done.returncode != 0 and done.stdout.strip().splitlines()[-1] == "0 passed, 1 failed"


def test_readme_has_the_two_commands_on_top_and_the_current_score():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("make book") < text.index("make test") < text.index("## Read")
    assert building.SCORE.search(text)[0] == f"<!-- score -->{generated.score_sentence(ROOT / 'book')}<!-- /score -->"


def test_ci_calls_exactly_the_readmes_command():
    assert "exec make test" in (ROOT / ".ci/run").read_text()
    assert "python -m lib test" in (ROOT / "Makefile").read_text().replace("$(PYTHON)", "python")


@pytest.mark.parametrize("folder", ["lib", "tests", "data", "book"])
def test_ruff_finds_nothing(folder):
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", folder], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_modules_stay_small():
    for path in sorted((ROOT / "lib").glob("*.py")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 520, f"{path.name} has {lines} lines: its idea has split"
