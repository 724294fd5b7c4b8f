"""How costs grow, as a picture."""

from pathlib import Path

KINDS = {  # the sizes of all cases, and the colour of each kind
    "networks": ("linear", ("seeds", "scales")),
    "width": ("gated", ("width", "hidden", "units")),
    "examples": ("relu", ("items", "points", "images")),
    "paths, domains, modes, steps, pixels": ("bias", ("paths", "domains", "modes", "window", "length", "m")),
}


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
