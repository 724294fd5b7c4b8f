"""`python -m lib book`: bring the pages up to date, render with Jupyter Book, keep the README's score."""

import os
import re
import subprocess
import sys
from pathlib import Path

from lib.book import execute, pages, verdicts
from lib.files import Problem, read_text, write_whole

SCORE = re.compile(r"(<!-- score -->).*?(<!-- /score -->)", re.S)


def build(root: Path = pages.ROOT) -> None:
    """Execute stale pages, render what has changed, keep the README's score."""
    print("pages:", flush=True)
    failures = execute.bring_up_to_date(pages.all_pages(root))
    if failures:
        raise Problem("\n\n".join(failures))
    print("rendering …", flush=True)
    render(root)
    update_readme(root)
    print(f"\nThe book is at {root / '_build' / 'html' / 'index.html'}")


def render(root: Path = pages.ROOT) -> None:
    """Render what has changed, with warnings as errors."""
    program = str(Path(sys.executable).parent / "jupyter-book")  # the package has no __main__
    command = [program, "build", str(root), "--path-output", str(root), "-W", "--keep-going"]
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return
    # What Sphinx has warned about it would not read, nor warn about, again.
    (root / "_build" / ".doctrees" / "environment.pickle").unlink(missing_ok=True)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in done.stdout.splitlines()]
    wrong = [line for line in lines if re.search(r"WARNING|ERROR|rror:", line)]
    raise Problem("\n".join([*(wrong or lines[-20:]), "The book did not render; warnings count as errors."]))


def update_readme(root: Path = pages.ROOT) -> None:
    """Keep the README's scoreboard line at what the executed pages say."""
    path = root / "README.md"
    before = read_text(path)
    score = verdicts.score(root / "book")
    after = SCORE.sub(lambda match: match[1] + score + match[2], before)
    if after != before:
        write_whole(path, after)
