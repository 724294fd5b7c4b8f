"""How far a run is and how long it will still take, told on a terminal while its cells are executed."""

import contextlib
import sys
import threading
import time
from pathlib import Path

from lib.press import files, pages, schema
from lib.press.errors import Problem

EVERY = 60.0  # seconds between two lines where there is no terminal


def durations(page: pages.Page, folder: Path) -> list[float] | None:
    """Seconds of each code cell in the newest run of the page that lies in `folder`; None where none has the same cells."""
    cells = len(pages.code(pages.source(page)))
    for path in sorted(folder.glob("*.ipynb"), key=lambda path: -path.stat().st_mtime)[:5]:
        try:
            notebook = schema.check_notebook(files.read_json(path), path.name)
        except Problem:
            continue
        own = [
            c
            for c in notebook["cells"]
            if c["cell_type"] == "code" and "injected-parameters" not in c["metadata"].get("tags", [])
        ]
        taken = [cell["metadata"].get("papermill", {}).get("duration") for cell in own]
        if len(taken) == cells and all(isinstance(seconds, int | float) for seconds in taken):
            return [float(seconds) for seconds in taken]
    return None


def counts(cell: dict) -> bool:
    """Whether this is a code cell of the page itself, not the one that brings a run's parameters."""
    return cell["cell_type"] == "code" and "injected-parameters" not in cell["metadata"].get("tags", [])


@contextlib.contextmanager
def watching(page: pages.Page, folder: Path, expected: float | None = None, told: bool = True):
    """While this lasts, progress is `told`; yields the name of a papermill engine that reports each cell.

    It writes the notebook at the end, however that comes, and not before and after each cell: nobody looks at it meanwhile.
    """
    from papermill.engines import NBClientEngine, papermill_engines

    cells = len(pages.code(pages.source(page)))
    with Progress(page.name, cells, durations(page, folder), expected) if told else contextlib.nullcontext() as progress:

        class Watched(NBClientEngine):
            @classmethod
            def execute_managed_notebook(cls, nb_man, kernel_name, **options):
                complete, path = nb_man.cell_complete, nb_man.output_path

                def completed(cell, *arguments, **more):
                    complete(cell, *arguments, **more)
                    if progress and counts(cell):
                        progress.advance()

                nb_man.cell_complete, nb_man.output_path = completed, None
                try:
                    return super().execute_managed_notebook(nb_man, kernel_name, **options)
                finally:
                    nb_man.output_path = path

        papermill_engines.register("watched", Watched)
        yield "watched"


class Progress:
    """Counts executed code cells and says what share of the work is done, and how much time is left.

    `weights` are the seconds that each cell took in an earlier run, of any size: this run's pace is measured against them.
    Without them, `expected` is how long the whole page takes with the book's parameters, if it runs with those.
    """

    def __init__(self, name: str, cells: int, weights: list[float] | None = None, expected: float | None = None, stream=None):
        self.name, self.cells, self.stream = name, cells, stream or sys.stderr
        self.weights = weights if weights and len(weights) == cells and sum(weights) > 0 else None
        self.expected, self.done = expected, 0
        self.began = self.spoke = time.monotonic()
        self.over = threading.Event()
        self.bar = self.stream.isatty()

    def share(self) -> float:
        """What share of the work lies behind, between 0 and 1."""
        if self.weights is not None:
            return sum(self.weights[: self.done]) / sum(self.weights)
        return self.done / self.cells if self.cells else 1.0

    def left(self, now: float | None = None) -> float | None:
        """Seconds that are left, or None while nothing is known."""
        elapsed = (time.monotonic() if now is None else now) - self.began
        if self.weights is not None:
            behind, whole = sum(self.weights[: self.done]), sum(self.weights)
            pace = max(self._pace, 1e-9) if behind > 0.02 * whole else 1.0
            return max(whole * pace - elapsed, 0.0)
        if self.expected is not None:
            return max(self.expected - elapsed, 0.0)
        return elapsed * (1 - self.share()) / self.share() if self.share() > 0.1 else None

    _pace = 1.0  # how much slower than the earlier run this one is

    def sentence(self) -> str:
        """'deep_linear/modes: cell 4 of 20, 35 % done after 12 s, about 22 s left'."""
        left = self.left()
        rest = "" if left is None else f", about {spoken(left)} left" if left >= 1 else ", nearly done"
        elapsed = spoken(time.monotonic() - self.began)
        return (
            f"{self.name}: cell {min(self.done + 1, self.cells)} of {self.cells}, {self.share():.0%} done after {elapsed}{rest}"
        )

    def advance(self) -> None:
        """One more code cell is done."""
        self.done = min(self.done + 1, self.cells)
        if self.weights is not None and (behind := sum(self.weights[: self.done])) > 0:
            self._pace = (time.monotonic() - self.began) / behind
        self.tell()

    def tell(self) -> None:
        """Say it: on a terminal in one line that changes, elsewhere a line a minute."""
        now = time.monotonic()
        if self.bar:
            self.stream.write(f"\r\x1b[K{self.sentence()}")
            self.stream.flush()
        elif now - self.spoke >= EVERY:
            self.spoke = now
            print(self.sentence(), file=self.stream, flush=True)

    def __enter__(self) -> "Progress":
        def tick():
            while not self.over.wait(1.0):
                self.tell()

        threading.Thread(target=tick, daemon=True).start()
        return self

    def __exit__(self, *trouble) -> None:
        self.over.set()
        if self.bar:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def spoken(seconds: float) -> str:
    """A time as one says it: 40 s, 3 min, 2 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
