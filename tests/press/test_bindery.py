"""The bindery: a new page of a new paper, builds that render only what has changed, a live preview, the quick check."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from playwright.sync_api import sync_playwright

from lib.press import files, pages, parameters
from lib.press.bindery import affected, building, check, freshness, new, preview, suite
from lib.press.environment import ROOT
from lib.press.notebooks import nursery
from lib.press.workbench import browser, execution, runs

CONTENTS = """format: jb-book
root: book/intro
parts:
  - caption: Paper
    chapters:
      - file: book/paper/one
      - file: book/paper/two
  - caption: Library
    chapters:
      - file: book/bibliography
"""


@pytest.fixture(scope="module")
def bound(executed_template, tmp_path_factory, nursed):
    """The small repository with a new page of a new paper, executed and rendered once."""
    target = tmp_path_factory.mktemp("bound") / "repository"
    copy = executed_template.copy(target)
    shutil.copy(ROOT / "_config.yml", target / "_config.yml")
    shutil.copytree(ROOT / "book" / "_static", target / "book" / "_static")
    (target / "tests").mkdir()
    copy.write("_toc.yml", CONTENTS)
    copy.write("README.md", "<!-- score -->none yet<!-- /score -->\n")
    copy.write("book/references.bib", "@unpublished{first,\n author = {A},\n title = {T},\n note = {N},\n year = {2026}\n}\n")
    copy.write("book/bibliography.md", "# Bibliography\n\n```{bibliography}\n```\n")
    copy.write("book/intro.md", "# Book\n\n```{scoreline}\n```\n")
    with nursery.used():  # the new page is one of science
        copy.made = copy.run("new", "sixth/first_figure", "--title", "A sixth paper")
        assert copy.made.returncode == 0, copy.made.stderr
        copy.built = copy.run("book")
    assert copy.built.returncode == 0, copy.built.stdout + copy.built.stderr
    return copy


# --- a new page ------------------------------------------------------------------------------------------------------


def test_a_new_page_executes_builds_and_passes_its_first_test(bound, forks):
    assert "only a person can do" in bound.made.stdout
    records = json.loads(bound.read("book/sixth/first_figure.ipynb"))
    assert any("first-figure-first" in json.dumps(cell) for cell in records["cells"])
    for name in ("book/sixth/first_figure.html", "book/sixth/index.html"):
        assert (bound.root / "_build/html" / name).exists()
    page = (bound.root / "_build/html/book/sixth/first_figure.html").read_text(encoding="utf-8")
    page = page[page.index("<article") :]
    assert page.index("fig-first-figure-first") < page.index("What this page checks") < page.index("The idea")  # answer first
    done = bound.run("tests/sixth/test_first_figure.py", "-p", "no:cacheprovider", module="pytest")
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_new_page_runs_as_smoke(bound, nursed):
    with nursery.used():
        done = bound.run("run", "sixth/first_figure", "--preset", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_page_of_a_paper_joins_the_first(repository, forks):
    repository.write("_toc.yml", CONTENTS)
    before = repository.read("book/paper/claims.yml")
    assert repository.run("new", "paper/three").returncode == 0
    assert repository.read("_toc.yml") == CONTENTS.replace("paper/two\n", "paper/two\n      - file: book/paper/three\n")
    assert repository.read("book/paper/claims.yml").startswith(before)
    assert "three-first" in repository.read("book/paper/claims.yml")
    assert not (repository.root / "book/paper/index.md").exists() and not (repository.root / "book/references.bib").exists()


@pytest.mark.parametrize("name", ["paper/one", "paper", "Paper/x", "../x/y", "a/b/c", "paper/", "paper/index", "_x/y"])
def test_names_that_cannot_be_a_page_are_refused(repository, name):
    before = sorted(repository.root.rglob("*.md"))
    with pytest.raises(pages.PageError):
        new.names(name, repository.root)
    assert sorted(repository.root.rglob("*.md")) == before


# --- builds ----------------------------------------------------------------------------------------------------------


def doctrees(repository):
    folder = repository.root / "_build" / ".doctrees"
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*.doctree")}


def read_again(repository, before):
    return {name.removesuffix(".doctree") for name, time in doctrees(repository).items() if before.get(name) != time}


def test_nothing_is_rendered_where_nothing_has_changed(bound, forks):
    before = doctrees(bound)
    done = bound.run("book")
    assert done.returncode == 0 and "nothing has changed" in done.stdout, done.stdout + done.stderr
    assert read_again(bound, before) == set()


def test_an_edit_in_prose_renders_its_page_alone(bound, forks):
    before = doctrees(bound)
    bound.edit("book/paper/one.md", "Some prose.", "Other prose.")
    done = bound.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_again(bound, before) == {"book/paper/one"}
    assert "Other prose." in (bound.root / "_build/html/book/paper/one.html").read_text(encoding="utf-8")


def test_a_claim_that_changes_renders_all_that_speak_of_it(bound, forks):
    before = doctrees(bound)
    bound.edit("book/sixth/claims.yml", "A mode grows along", "Every mode grows along")
    done = bound.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"book/sixth/first_figure", "book/sixth/index", "book/intro"} <= read_again(bound, before)
    assert not {"book/paper/one", "book/paper/two"} & read_again(bound, before)


def test_a_build_that_fails_fails_again_until_it_is_mended_and_leaves_the_readme(bound, forks):
    bound.edit("book/paper/two.md", "Some prose.", "Some prose, see {doc}`nowhere`.")
    readme = bound.read("README.md").replace("<!-- score -->", "<!-- score -->stale ")
    bound.write("README.md", readme)
    for _ in range(2):  # Sphinx alone would have forgotten its warning
        done = bound.run("book")
        assert done.returncode != 0 and "nowhere" in done.stderr, done.stdout + done.stderr
        assert bound.read("README.md") == readme
    bound.edit("book/paper/two.md", ", see {doc}`nowhere`.", ".")
    assert bound.run("book").returncode == 0
    assert "stale" not in bound.read("README.md")


def test_stamps_tell_results_from_prose(executed):
    before = freshness.state(executed.root)
    executed.edit("book/paper/one.ipynb", "Some prose.", "Other prose.")
    assert freshness.state(executed.root) == before
    executed.write("book/seconds.json", '{"paper/one": 12.0}')
    after = freshness.state(executed.root)
    assert after["paper"] != before["paper"] and after[freshness.WHOLE] != before[freshness.WHOLE]
    assert freshness.of_document(executed.root, "book/paper/one").name == "paper"
    assert freshness.of_document(executed.root, "book/intro").name == freshness.WHOLE


# --- preview ---------------------------------------------------------------------------------------------------------


def test_a_save_shows_in_the_browser(bound, forks):
    """A real browser: the page comes up, and after a save it shows the new sentence without being asked to.

    The preview is a process of its own; what it executes and renders is in forks."""
    found = browser.find()
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"the preview needs a browser. {browser.NONE_FOUND}")
    command = [sys.executable, "-u", "-m", "lib", "preview", "paper/two", "--no-browser"]
    streams = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    live = subprocess.Popen(command, cwd=bound.root, env=bound.environment(), **streams)
    try:
        address = next(line.strip() for line in live.stdout if line.startswith("http://127.0.0.1:"))
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=found, args=list(browser.FLAGS))
            tab = chromium.new_page()
            tab.goto(address)
            assert "A sentence that was saved" not in tab.inner_text("article")
            bound.edit("book/paper/two.md", "Some prose.", "A sentence that was saved.")
            tab.wait_for_function("document.body?.innerText.includes('A sentence that was saved')", timeout=120_000)
            bound.edit("book/paper/two.md", "* width)", "* width + 1)")  # the verdict changes: the page says so, and stays
            tab.wait_for_selector("#preview-problem", timeout=120_000)
            assert "not reproduced" in tab.inner_text("#preview-problem")
            bound.edit("book/paper/two.md", "* width + 1)", "* width)")
            tab.wait_for_function("!(document.getElementById('preview-problem') || {hidden: true}).textContent", timeout=120_000)
            chromium.close()
    finally:
        live.terminate()
        live.wait(30)


def test_the_preview_listens_on_the_loopback_address_and_serves_the_book_only(tmp_path):
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "page.html").write_text("<body>here</body>")
    (tmp_path / "secret.txt").write_text("no")
    state = preview.State()
    server = preview.serve(state, tmp_path / "html")
    host, port = server.server_address
    try:
        assert host == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/page.html") as answer:
            assert b"here" in (text := answer.read()) and b"/_preview" in text
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/../secret.txt")
        start = time.perf_counter()
        threading.Timer(0.3, lambda: state.set(built=True, problem="oh")).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_preview?seen=0") as answer:
            told = json.load(answer)
        assert told == {"state": 1, "built": 1, "problem": "oh"} and time.perf_counter() - start > 0.2
    finally:
        server.shutdown()
        server.server_close()


# --- the quick check -------------------------------------------------------------------------------------------------


def test_a_change_touches_the_tests_and_pages_that_use_it():
    theory = affected.touched(["lib/linear/theory.py"])
    assert theory.tests["tests/linear/test_theory.py"] == 0 and theory.tests["tests/gated/test_race.py"] <= 1
    assert "deep_linear/modes" in theory.pages and theory.tests.get("tests/press/test_signals.py", affected.FAR) >= 3
    recurrent = affected.touched(["lib/biases/recurrent.py"])
    assert recurrent.tests["tests/biases/test_recurrent.py"] == 0 and "tests/linear/test_theory.py" not in recurrent.tests
    assert "bias_learning/dynamics" in recurrent.pages and "deep_linear/modes" not in recurrent.pages
    page = affected.touched(["book/deep_linear/modes.md"])
    assert page.pages == {"deep_linear/modes": 0} and "tests/press/test_pages.py" in page.tests
    assert affected.touched(["LICENSE"]) == affected.Touched({}, {})


def test_modules_are_found_behind_doors_and_inside_of_functions(tmp_path):
    path = ROOT / "tests" / "linear" / "test_theory.py"
    assert "lib.linear.theory" in affected.uses(path, ROOT)
    assert affected.home("lib.linear.mode_strength", ROOT) == {"lib.linear", "lib.linear.theory"}
    assert "lib.press.bindery.suite" in affected.uses(ROOT / "lib" / "press" / "workbench" / "commands.py", ROOT)
    far = affected.distances({"lib.linear.theory"}, ROOT)
    assert far["lib.linear.theory"] == 0 and "lib.press.terminal" not in far


def test_the_nearest_tests_come_first_and_what_does_not_fit_is_left():
    touched = affected.Touched({"tests/a.py": 0, "tests/b.py": 2}, {"paper/one": 1})
    known = {"tests/a.py": 3.0, "tests/a.py::slow": 50.0, "tests/b.py": 4.0}
    possible = check.units(touched, known)
    assert [unit.name for unit in possible] == ["tests/a.py", "tests/a.py::slow", f"{check.SMOKE}[paper/one]", "tests/b.py"]
    chosen, left = check.choose(possible, 12.0)
    assert [unit.name for unit in left] == ["tests/a.py::slow"] and sum(unit.seconds for unit in chosen) == 11.0
    assert "--deselect=tests/a.py::slow" in check.arguments(chosen, left, known)


def test_the_check_finds_what_is_wrong_with_the_book(executed):
    assert "no 'smoke' preset" in " ".join(check.book(executed.root))
    executed.write("book/presets.yml", "".join(f"paper/{name}: {{smoke: {{}}, paper: {{}}}}\n" for name in ("one", "two")))
    assert check.book(executed.root) == []
    executed.edit("book/paper/one.ipynb", "Some prose.", "Some other prose.")
    assert "differs between .md and .ipynb" in " ".join(check.book(executed.root))
    executed.edit("lib/gamma.py", "2.0", "2.5")
    assert "stale: paper/two (lib/gamma.py changed)" in " ".join(check.book(executed.root))
    executed.edit("book/paper/claims.yml", "reason: exact", "reason:")
    assert "reason" in " ".join(check.book(executed.root))


def test_files_that_changed_are_asked_of_git(executed):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=executed.root, check=True, capture_output=True
        )

    git("init", "-q")
    git("add", "book")
    git("commit", "-q", "-m", "x")
    executed.edit("book/paper/one.md", "Some prose.", "Other prose.")
    (executed.root / ".gitignore").write_text("lib\ndata\n*.toml\n*.txt\n")
    executed.write("book/new.md", "# New")
    assert affected.changed("HEAD", executed.root) == [".gitignore", "book/new.md", "book/paper/one.md"]
    with pytest.raises(files.Problem, match="git cannot tell"):
        affected.changed("no-such-commit", executed.root)


def test_the_longest_tests_come_first_and_costly_fixtures_stay_together(tmp_path, forks):
    """A worker's view of the plugin: order and groups."""
    inside = ROOT / "tests" / "press"
    command = [
        *nursery.client(os.environ[nursery.ADDRESS]),
        "-m",
        "pytest",
        "--collect-only",
        "-p",
        "lib.press.bindery.suite",
        "-n",
        "0",
    ]
    done = subprocess.run([*command, str(inside / "test_sweeps.py")], cwd=ROOT, text=True, capture_output=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    known = suite.seconds()
    times = [known.get(name, suite.WORTH) for name in tests]
    assert tests and times == sorted(times, reverse=True)


def test_what_shares_something_runs_on_one_worker_in_its_order(tmp_path):
    """A real run with two workers: the tests of a file, like the cells of a page, stay together."""
    body = "import os\n\ndef note(n):\n    open(os.environ['SEEN'], 'a').write(f'{__name__[-1]} {n} {os.getpid()}\\n')\n"
    for name in "ab":
        (tmp_path / f"test_{name}.py").write_text(body + "".join(f"\n\ndef test_{n}():\n    note({n})\n" for n in range(4)))
    seen = tmp_path / "seen.txt"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist",
        "-p",
        "lib.press.bindery.suite",
        "-n",
        "2",
        "--dist",
        "loadscope",
        "test_a.py",
        "test_b.py",
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT), "SEEN": str(seen), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert subprocess.run(command, cwd=tmp_path, env=env, capture_output=True).returncode == 0
    ran = [line.split() for line in seen.read_text().splitlines()]
    for name in "ab":
        mine = [(int(n), pid) for file, n, pid in ran if file == name]
        assert [n for n, _ in mine] == [0, 1, 2, 3] and len({pid for _, pid in mine}) == 1
    assert (
        suite.group("book/a/b.ipynb::Cell 2") == "book/a/b.ipynb" and suite.group("tests/test_x.py::test_y") == "tests/test_x.py"
    )
    alone = "tests/press/test_plots.py::test_y"
    assert suite.group(alone) == alone and suite.group("tests/press/test_bindery.py::test_y") == "tests/press/test_bindery.py"


def test_a_worker_that_is_a_fork_and_dies_is_replaced_and_the_run_ends(nursed, tmp_path):
    """Two workers, of which one dies under a test: that is told, the other one's tests pass, and no fork stays behind."""
    body = "import os\n\ndef note():\n    open(os.environ['SEEN'], 'a').write(f'{os.getpid()} {os.getppid()}\\n')\n"
    tests = "".join(f"\n\ndef test_{n}():\n    note()\n" for n in range(3))
    (tmp_path / "test_a.py").write_text(body + "\n\ndef test_dies():\n    note()\n    os._exit(9)\n")
    (tmp_path / "test_b.py").write_text(body + tests)
    command = [*nursery.client(nursed), "-m", "pytest", "-p", "xdist", *suite.dealt(2, nursed), "--max-worker-restart=1"]
    env = os.environ | {"PYTHONPATH": str(ROOT), "SEEN": str(tmp_path / "seen"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    files = ["test_a.py", "test_b.py"]
    done = subprocess.run([*command, *files], cwd=tmp_path, env=env, text=True, capture_output=True, timeout=120)
    assert done.returncode != 0 and "crashed while running 'test_a.py::test_dies'" in done.stdout, done.stdout + done.stderr
    assert "maximum crashed workers reached: 1" in done.stdout and "3 passed" in done.stdout, done.stdout
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert len({parent for _, parent in seen}) == 1 and len({pid for pid, _ in seen}) == 3  # forks of one interpreter
    assert not any(os.path.exists(f"/proc/{pid}") for pid, _ in seen)
    assert "--max-worker-restart=8" in suite.dealt(2, nursed)  # without it, one that dies again and again would be for ever


def test_tests_are_compiled_once_and_as_pytest_would(tmp_path):
    from _pytest.assertion import rewrite as inner

    path = tmp_path / "test_x.py"
    path.write_text("def test_x():\n    one = 1\n    assert one == 2\n")
    suite.rewrite([path])
    (made,) = inner.get_cache_dir(path).iterdir()
    assert made.name == f"test_x{inner.PYC_TAIL}" and b"@py_assert" in made.read_bytes()
    before = made.stat().st_mtime_ns
    suite.rewrite([path])
    assert made.stat().st_mtime_ns == before  # nothing is done twice
    path.write_text("def test_y(:\n")
    suite.rewrite([path])  # what cannot be compiled is for the workers to say
    assert inner._read_pyc(path, made) is None


def test_no_test_begins_after_the_deadline(tmp_path, forks):
    (tmp_path / "test_two.py").write_text("import time\n\ndef test_one():\n    time.sleep(0.1)\n\ndef test_two():\n    pass\n")
    python = json.loads(os.environ[nursery.PYTHON])
    command = [*python, "-m", "pytest", "-q", "-p", "lib.press.bindery.suite", "-p", "no:cacheprovider", "test_two.py"]
    env = os.environ | {suite.DEADLINE: str(time.time() + 1e6), "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert "2 passed" in subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True).stdout
    env[suite.DEADLINE] = str(time.time())
    assert "2 skipped" in subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True).stdout


def test_a_page_in_processes_of_its_own_writes_the_notebook_that_forks_wrote(executed):
    page = pages.find("paper/two", executed.root)
    before = page.notebook.read_bytes()  # by the template's fixture, in forks
    page.notebook.unlink()
    assert "JUPYTER_PATH" not in os.environ and nursery.PYTHON not in os.environ
    execution.execute(page)
    assert page.notebook.read_bytes() == before


def test_a_forked_kernel_ends_with_its_client_and_is_interrupted_like_any_other(nursed, tmp_path):
    import psutil
    from jupyter_client.manager import start_new_kernel

    with nursery.used():
        manager, client = start_new_kernel(kernel_name="python3")
    try:
        told = []
        hear = lambda message: told.append(message["content"].get("text", ""))  # noqa: E731
        code = "import os, sys; print(os.getpid(), 'torch' in sys.modules, 'lib' in sys.modules, os.environ['RACING_SPARED'])"
        client.execute_interactive(code, output_hook=hear, timeout=60)
        pid, torch_there, lib_there, spared = "".join(told).split()
        assert (torch_there, lib_there) == ("True", "False")
        told.clear()
        client.execute_interactive("import pandas; print(pandas.get_option('display.max_columns'))", output_hook=hear, timeout=60)
        assert "".join(told) == "20\n", "tables are cut as in a notebook, not to the width of a terminal"
        assert 0.3 < float(spared) < 30, "seconds that a page in a kernel of its own would have spent on its imports"
        kernel = psutil.Process(int(pid))
        asked = client.execute("import time; print('asleep', flush=True); time.sleep(100)")
        while "asleep" not in client.get_iopub_msg(timeout=60)["content"].get("text", ""):
            pass
        manager.interrupt_kernel()
        answer = client.get_shell_msg(timeout=60)
        assert answer["parent_header"]["msg_id"] == asked and answer["content"]["ename"] == "KeyboardInterrupt"
        os.kill(manager.provisioner.pid, signal.SIGKILL)  # the client's
        psutil.wait_procs([kernel], timeout=20)
        assert not kernel.is_running() or kernel.status() == psutil.STATUS_ZOMBIE
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_command_in_a_fork_ends_as_it_would_by_itself_and_with_its_client(nursed, executed):
    import psutil

    with nursery.used(address=nursed):
        python, env = json.loads(os.environ[nursery.PYTHON]), executed.environment()
    wrong = ["-m", "lib", "run", "paper/three"]
    done = subprocess.run([*python, *wrong], cwd=executed.root, env=env, text=True, capture_output=True)
    assert done.returncode == 2 and "there is no page" in done.stderr and done.stdout == ""
    says, sleeps = "import os; print(os.getpid(), flush=True)", "import time; time.sleep(100)"
    slow = [*python, "-m", "timeit", "-n1", "-r1", "-s", says, sleeps]
    client = subprocess.Popen(slow, cwd=executed.root, env=env, text=True, stdout=subprocess.PIPE)
    fork = psutil.Process(int(client.stdout.readline()))
    assert fork.pid != client.pid
    client.kill()
    assert client.wait() == -signal.SIGKILL
    psutil.wait_procs([fork], timeout=20)
    assert not fork.is_running()
    gone = nursery.client(f"{nursed}.gone")  # no interpreter that forks: an ordinary process does it
    done = subprocess.run([*gone, *wrong], cwd=executed.root, env=env, text=True, capture_output=True)
    assert done.returncode == 2 and "there is no page" in done.stderr


def test_forks_do_not_share_their_random_numbers(nursed):
    """What forgets its seed shows it: two forks draw different numbers, with each library that a page may draw with."""
    draw = "import random, numpy, torch; print(random.random(), numpy.random.random(), torch.rand(1).item())"
    command = [*nursery.client(os.environ[nursery.ADDRESS]), "-u", "-c", draw]
    drawn = [subprocess.run(command, text=True, capture_output=True, check=True).stdout.split() for _ in range(2)]
    assert len(drawn[0]) == 3 and not set(drawn[0]) & set(drawn[1])


def test_seconds_are_kept_longest_first(tmp_path):
    suite.keep({"a": 1.0, "b": 20.04, "c": 0.1, "book/x.ipynb": 30.0}, tmp_path / "seconds.json")
    assert json.loads((tmp_path / "seconds.json").read_text()) == {"b": 20.0, "a": 1.0}
    assert list(json.loads((tmp_path / "seconds.json").read_text())) == ["b", "a"]
    assert {f"book/{page.name}.ipynb" for page in pages.every()} <= set(suite.seconds())  # no page waits for the end


# --- what the papers state -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_the_parameter_table_says_same_only_where_the_paper_does(page):
    known, sizes = parameters.of_page(page.markdown), runs.presets(page)
    named = sizes.get("stated") or {}
    assert set(named) <= set(known), f"book/presets.yml states {set(named) - set(known)}, which {page.name} does not have"
    for parameter in known.values():
        words = runs.stated(page, parameter)
        if words == "same":
            paper = (sizes.get("paper") or {}).get(parameter.name)
            assert named.get(parameter.name) == "same" or paper == parameter.default
        if parameter.name in runs.OURS:
            assert words == "–"


def test_a_parameter_of_which_nothing_is_said_is_not_stated(executed):
    sizes = (
        "paper/one:\n  paper: {width: 3}\n  stated: {name: 'x, in its Table 1'}\npaper/two:\n  paper: {width: 4}\n  cost: none\n"
    )
    executed.write("book/presets.yml", sizes)
    one, two = (pages.find(f"paper/{name}", executed.root) for name in ("one", "two"))
    known = parameters.of_page(one.markdown)
    assert [runs.stated(one, p) for p in known.values()] == ["same", "x, in its Table 1"]
    assert [runs.stated(two, p) for p in known.values()] == ["`4`", "not stated"]


def test_the_makefile_has_the_commands_of_the_readme():
    makefile, readme = (ROOT / "Makefile").read_text(), (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", readme, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), f"there is no `make {target}`"
    assert building.SCORE.search(readme)
