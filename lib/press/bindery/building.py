"""`python -m lib book`: bring the pages up to date, render what has changed, keep the README's score.

Rendering is incremental. Where no file that the book is made from has changed since the last build that succeeded, nothing is
rendered at all; otherwise Sphinx reads the documents again that show something which has changed (`freshness`).
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from lib.press import environment, files, pages
from lib.press.notebooks import nursery
from lib.press.workbench import execution

ROOT = environment.ROOT
STRICT = ("-W", "--keep-going")  # warnings are errors, and all of them are shown
SCORE = re.compile(r"(<!-- score -->).*?(<!-- /score -->)", re.S)
APART = ("_build", "_runs", ".git", ".venv", "__pycache__", ".ipynb_checkpoints")  # the book is not made from these


def output(root: Path | None = None) -> Path:
    """Where the rendered book is."""
    return (root or ROOT) / "_build" / "html"


def build_book(options=None) -> int:
    """`python -m lib book`: bring the pages up to date, then render."""
    start = time.perf_counter()
    print("pages:", flush=True)
    failures = execution.bring_up_to_date(pages.every())
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    if failures:
        return 1
    code = render()
    if code == 0:  # a book that did not render leaves the README as it was
        update_readme()
        print(f"\nThe book is at {output() / 'index.html'} ({time.perf_counter() - start:.0f} s).")
    return code


def update_readme(root: Path | None = None) -> None:
    """Keep the README's scoreboard line at what the executed pages say."""
    from lib.press.rendering.generated import score_sentence

    root = root or ROOT
    path = root / "README.md"
    before = files.read_text(path)
    said = score_sentence(root / "book")
    after = SCORE.sub(lambda match: match[1] + said + match[2], before)
    if after != before:
        files.write_whole(path, after)


def sources(root: Path | None = None) -> str:
    """A digest of the names, sizes and times of all files that the book is made from."""
    root = root or ROOT
    found = []
    for folder, inside, names in os.walk(root):
        inside[:] = sorted(name for name in inside if name not in APART and not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.exists() and path != root / "README.md":
                about = path.stat()
                found.append(f"{path.relative_to(root)} {about.st_size} {about.st_mtime_ns}")
    return pages.digest("\n".join([*found, sys.version]))


def rendered(root: Path | None = None) -> bool:
    """Whether the book that lies there is whole and was made from the files as they are."""
    root = root or ROOT
    contents = files.read_text(root / "_toc.yml") if (root / "_toc.yml").exists() else ""
    there = all((output(root) / f"{name}.html").exists() for name in re.findall(r"(?:file|root): *(\S+)", contents))
    mark = root / "_build" / "rendered"
    return there and mark.exists() and mark.read_text(encoding="utf-8") == sources(root)


def render(root: Path | None = None) -> int:
    """Render what has changed, with warnings as errors; the status of the build."""
    root = root or ROOT
    if rendered(root):
        print("rendering: nothing has changed", flush=True)
        return 0
    print("rendering …", flush=True)
    mark, now = root / "_build" / "rendered", sources(root)
    mark.unlink(missing_ok=True)
    known, kept = root / "_build" / ".doctrees" / "environment.pickle", root / "_build" / "environment.before"
    if known.exists():
        shutil.copy2(known, kept)
    forks = nursery.PYTHON in os.environ and os.environ.get(nursery.ADDRESS)  # the suite's, whose large one has Sphinx in memory
    python = nursery.client(forks) if forks else [sys.executable]
    done = subprocess.run(
        [*python, "-m", "lib.press.bindery.binder", "build", str(root), "--path-output", str(root), *STRICT],
        cwd=root,
        env=execution.kernel_environment(root) | {"PYTHONWARNINGS": "ignore"},  # explorers' pictures are small: one thread
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=execution.die_with_parent,
    )
    if done.returncode == 0:
        files.write_whole(mark, now)
        kept.unlink(missing_ok=True)
        return 0
    known.unlink(missing_ok=True)  # what Sphinx has warned about it would not read, nor warn about, again
    if kept.exists():
        kept.replace(known)
    lines = [execution.plain_text(line) for line in done.stdout.splitlines()]
    wrong = [line for line in lines if any(word in line for word in ("WARNING", "ERROR", "Error", "rror:"))]
    if "Exception occurred:" in lines:  # an error of ours: the last place and what was wrong there
        wrong = lines[lines.index("Exception occurred:") :][:5]
    print("\n".join(wrong or lines[-20:]), file=sys.stderr)
    print("The book did not render; warnings count as errors.", file=sys.stderr)
    return done.returncode
