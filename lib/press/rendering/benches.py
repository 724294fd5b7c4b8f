"""What the book says about its own speed and its own tests: the recorded bench, the recorded run of planted errors."""

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes

from lib.press import files
from lib.press.bench import record, tables
from lib.press.rendering.generated import Generated, scoreboard
from lib.press.trials import mutants

NO_BENCH = "No bench is recorded yet; `python -m lib bench --record` makes one."
NO_MUTANTS = "No run of planted errors is recorded yet; `python -m lib mutate --record` makes one."
FIGURE = "_build/figures/bench-growth.png"
PANELS = {  # the sizes of all cases in four groups
    "networks": ("seeds",),
    "width": ("width", "hidden", "units"),
    "examples": ("items", "points", "images"),
    "paths, domains, modes, steps": ("paths", "domains", "modes", "window"),
}
CAPTION = (
    "How the cost of each fast path grows, both axes relative to the smallest size, both logarithmic. Dots are medians, bars the"
    " range of all passes; dashed lines have the slopes of the operations counted. Shallower than dashed: overhead that a larger"
    " program shares out. Steeper: it has outgrown a cache."
)
ALT = (
    "Four panels with double logarithmic axes. Measured costs run near the dashed lines of the operations counted or below them."
)


class Bench(Generated):
    """A part of the recorded bench: `machine`, `ratios`, `growth` or `authors`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(self.root / record.RECORD))  # while it is missing, the page is read again each time
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
            f"{on['processor']} ({on['instructions']}; Python {on['python']}, torch {on['torch']}); {best}."
        )

    def ratios(self, found: dict) -> str:
        """Every fast path against its plain program."""
        return scoreboard(tables.ratio_table(found).splitlines(), "bench")

    def growth(self, found: dict) -> str:
        """The figure, and the slopes behind it, folded."""
        draw(found, self.root / FIGURE)
        figure = f"```{{figure}} /{FIGURE}\n:name: fig-bench-growth\n:alt: {ALT}\n{CAPTION}\n```"
        folded = scoreboard(tables.growth_table(found).splitlines(), "bench")
        return f"{figure}\n\n``````{{dropdown}} All slopes\n{folded}\n``````"

    def authors(self, found: dict) -> str:
        """The authors' own programs beside ours, in the same run."""
        none = "The recorded bench was made without the authors' programs."
        return scoreboard(tables.authors_table(found).splitlines(), "bench") if found["authors"] else none


class Mutants(Generated):
    """The recorded run of planted errors."""

    def run(self) -> list[nodes.Node]:
        path = self.root / mutants.RECORD
        self.env.note_dependency(str(path))
        if not path.exists():
            return self.parse(NO_MUTANTS)
        found = files.read_json(path, mutants.PlantingError)
        count = mutants.total(found)
        share = f"{mutants.share(count):.1%}".replace("%", " %")
        head = (
            f"Of {count['planted']:,} errors planted on {found['date']} in the numeric modules, {count['equivalent']:,} change "
            f"no number; of the others the unit tests catch {count['caught']:,}, {share}."
        )
        return self.parse(f"{head}\n\n``````{{dropdown}} Module by module, and what survived\n{mutants.table(found)}\n``````")


def series(found: dict, sizes: tuple[str, ...]) -> Iterator[tuple[str, dict]]:
    """(name of the case, its growth) for all cases that were followed along one of these sizes."""
    for name, row in found["cases"].items():
        yield from ((name, grown) for size, grown in row["growth"].items() if size in sizes)


def draw(found: dict, path: Path) -> None:
    """The log-log figure of all growths, written to `path`."""
    import matplotlib.pyplot as plt

    from lib.press import plots

    figure, axes = plots.panels(2, 2, height=2.9)
    for ax, (title, sizes) in zip(axes.flat, PANELS.items(), strict=True):
        slopes, reach = set(), 1.0
        for name, grown in series(found, sizes):
            x = [size / grown["sizes"][0] for size in grown["sizes"]]
            first = grown["seconds"][0]["median"]
            y = [taken["median"] / first for taken in grown["seconds"]]
            below = [(taken["median"] - taken["low"]) / first for taken in grown["seconds"]]
            above = [(taken["high"] - taken["median"]) / first for taken in grown["seconds"]]
            line = ax.plot(x, y, marker="o", markersize=3, linewidth=1.2, label=name)[0]
            ax.errorbar(x, y, [below, above], fmt="none", ecolor=line.get_color(), linewidth=0.8)
            slopes.add(round(grown["expected"] * 4) / 4)
            reach = max(reach, x[-1])
        for slope in sorted(slopes):
            plots.theory(ax, [1, reach], [1, reach**slope], label=None, linewidth=0.9)
        ax.set(xscale="log", yscale="log", xlabel=f"{title}, times the smallest", ylabel="cost, times the smallest")
        plots.label_lines(ax)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
