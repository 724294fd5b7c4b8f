"""What the book says about its own speed and its own tests: the recorded bench, the recorded run of planted errors."""

from pathlib import Path

from docutils import nodes

from lib.press import files
from lib.press.bench import record, tables
from lib.press.rendering.generated import Generated, scoreboard
from lib.press.trials import mutants

NO_BENCH = "No bench is recorded yet; `python -m lib bench --record` makes one."
NO_MUTANTS = "No run of planted errors is recorded yet; `python -m lib mutate --record` makes one."
FIGURE = "_build/figures/bench-growth.png"
KINDS = {  # the sizes of all cases, and the colour of each kind
    "networks": ("linear", ("seeds",)),
    "width": ("gated", ("width", "hidden", "units")),
    "examples": ("relu", ("items", "points", "images")),
    "paths, domains, modes, steps, pixels": ("bias", ("paths", "domains", "modes", "window", "m")),
}
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


def kind_of(size: str) -> tuple[str, str]:
    """(kind, name of its colour) of a size."""
    return next((kind, colour) for kind, (colour, sizes) in KINDS.items() if size in sizes)


def draw(found: dict, path: Path) -> None:
    """The log-log figure of all growths, a panel for each case, written to `path`."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    from lib.press import plots

    cases = {name: row["growth"] for name, row in found["cases"].items() if row["growth"]}
    rows = len(cases) // 4 + 1  # one panel more than cases at least: it has the key
    figure, axes = plots.panels(4, rows, height=1.75, sharex=True, sharey=True)
    axes, shown = list(axes.flat), {}
    for ax, (name, growths) in zip(axes, cases.items(), strict=False):
        for size, grown in growths.items():
            kind, colour = kind_of(size)
            x = [value / grown["sizes"][0] for value in grown["sizes"]]
            first = grown["seconds"][0]["median"]
            y = [taken["median"] / first for taken in grown["seconds"]]
            bars = [[abs(taken[end] - taken["median"]) / first for taken in grown["seconds"]] for end in ("low", "high")]
            shown[kind] = ax.errorbar(x, y, bars, fmt="o-", color=plots.COLOURS[colour], markersize=3, linewidth=1.1)
            shown["operations"] = plots.theory(ax, [1, x[-1]], [1, x[-1] ** grown["expected"]], label=None, linewidth=0.9)[0]
        ax.set(xscale="log", yscale="log", xlim=(0.85, 80), ylim=(0.5, 120))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(10))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        ax.text(0.04, 0.97, name, transform=ax.transAxes, va="top", fontsize=7.5)
    for ax in axes[len(cases) :]:
        ax.axis("off")
        axes[axes.index(ax) - 4].tick_params(labelbottom=True)  # the last panel of its column
    key = [words.replace(", modes,", ",\nmodes,") for words in shown]
    axes[len(cases)].legend(list(shown.values()), key, loc="center left", fontsize=7, borderaxespad=0)
    figure.supxlabel("size, times the smallest", fontsize=9)
    figure.supylabel("cost, times the smallest", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
