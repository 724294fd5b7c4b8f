"""What the book says about its own speed and its own tests: the recorded bench, the recorded run of planted errors."""

from pathlib import Path

from docutils import nodes

from lib.press import files, terminal
from lib.press.bench import figure, record, tables
from lib.press.bindery import freshness
from lib.press.rendering.generated import Generated, scoreboard
from lib.press.trials import mutants

NO_BENCH = "No bench is recorded yet; `python -m lib bench --record` makes one."
NO_MUTANTS = "No run of planted errors is recorded yet; `python -m lib mutate --record` makes one."
FIGURE = "_build/figures/bench-growth.png"
CAPTION = (
    "How the cost of each fast path grows, both axes relative to the smallest size, both logarithmic. Dots are medians, bars the"
    " range of all passes; dashed lines have the slope of the operations counted. Shallower than dashed: overhead that a larger"
    " program shares out. Steeper: it has outgrown a cache."
)
ALT = "Small panels with double logarithmic axes, one for each fast path. Costs run near the dashed lines or below them."


class Bench(Generated):
    """A part of the recorded bench: `machine`, `ratios`, `growth` or `authors`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(freshness.stamp(self.root, freshness.COSTS)))
        found, part = record.read(self.root), self.arguments[0]
        makers = {"machine": self.machine, "ratios": self.ratios, "growth": self.growth, "authors": self.authors}
        if part not in makers:
            raise self.error(f"a bench has the parts {', '.join(makers)}, not '{part}'")
        return self.parse(makers[part](found) if found else NO_BENCH)

    def machine(self, found: dict) -> str:
        """When and on what."""
        on = found["machine"]
        best = tables.peak_sentence(found["peaks"])
        return (
            f"Measured on {found['date']} in one run of {found['seconds']:.0f} processor seconds, on one core of "
            f"{on['processor']} ({on['instructions']}; Python {on['python']}, torch {on['torch']}; load {on['load']}); {best}."
        )

    def ratios(self, found: dict) -> str:
        """Every fast path against its plain program."""
        return scoreboard(tables.ratio_table(found).splitlines(), "bench")

    def growth(self, found: dict) -> str:
        """The figure, and the slopes behind it, folded."""
        picture, mark = self.root / FIGURE, freshness.stamp(self.root, freshness.COSTS).read_text(encoding="utf-8")
        drawn = picture.with_suffix(".key")  # drawing takes seconds, and the page shows other things that change more often
        if not (picture.exists() and drawn.exists() and drawn.read_text(encoding="utf-8") == mark):
            figure.draw(found, picture)
            files.write_whole(drawn, mark)
        shown = f"```{{figure}} /{FIGURE}\n:name: fig-bench-growth\n:alt: {ALT}\n{CAPTION}\n```"
        folded = scoreboard(tables.growth_table(found).splitlines(), "bench")
        return f"{shown}\n\n``````{{dropdown}} All slopes\n{folded}\n``````"

    def authors(self, found: dict) -> str:
        """The authors' own programs beside ours, in the same run."""
        none = "The recorded bench was made without the authors' programs."
        return scoreboard(tables.authors_table(found).splitlines(), "bench") if found["authors"] else none


class Mutants(Generated):
    """The recorded run of planted errors."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(freshness.stamp(self.root, freshness.COSTS)))
        return self.parse(planted(self.root))


def planted(root: Path) -> str:
    """What the recorded run of planted errors found, in Markdown; a sentence where none is recorded."""
    found = mutants.read(root)
    if found is None:
        return NO_MUTANTS
    count, older = mutants.total(found), mutants.older(found, root)
    share, least = (f"{part:.1%}".replace("%", " %") for part in (mutants.share(count), count["caught"] / count["planted"]))
    head = (
        f"Of {count['planted']:,} errors planted on {found['date']} in the numeric modules, {count['equivalent']:,} change no "
        f"number; of the others the unit tests catch {count['caught']:,}, {share}. (If the first were counted as "
        f"missed, too, it would be {least}.)"
    )
    if older:
        head += f" Since then the code of {terminal.count(len(older), 'module')} has changed."
    return f"{head}\n\n``````{{dropdown}} Module by module, and what survived\n{mutants.table(found)}\n``````"
