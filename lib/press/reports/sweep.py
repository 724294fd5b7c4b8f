"""What a sweep measured against what was swept: one picture for each claim, and a report with all of them.

Every point is a run; the line is their mean, the band their range (over seeds, if seeds were swept). The book's value is a
diamond, what the claim tolerates is shaded.
"""

import base64
import html
import io
import math
from pathlib import Path

from lib.press import claims, files, pages, parameters
from lib.press.errors import ClaimError, RunError
from lib.press.notebooks import plain
from lib.press.reports import facts, sheet
from lib.press.workbench import runs

MOST = 60  # pictures in one report
SEEDS = ("seed", "start")  # parameters that count draws


def tidy(page: pages.Page, rows: list[dict]):
    """A pandas table with a line for each number that was measured: run, parameters, claim, part, measured, verdict."""
    import pandas

    known = claims.of_page(page.name, page.root / "book")
    found = []
    for row in rows:
        for name, record in row["results"].items():
            verdict = facts.verdict(known[name], record) if name in known else record["verdict"]
            for part, value in parts_of(record["measured"]).items():
                about = {"claim": name, "part": part, "measured": value, "verdict": verdict}
                provenance = {key: row.get(key) for key in ("run", "seconds", "device", "finished", "fingerprint")}
                found.append(row["parameters"] | about | provenance)
    return pandas.DataFrame(found)


def parts_of(measured) -> dict[str, float]:
    """The parts of a measured value by name; one that has no parts has the name ''."""
    several = dict(enumerate(measured)) if isinstance(measured, list) else measured
    return {str(name): float(value) for name, value in (several if isinstance(several, dict) else {"": several}).items()}


def current(page: pages.Page, rows: list[dict]) -> tuple[list[dict], int]:
    """The rows that today's code made, and how many others there are; all of them if there is none of today's."""
    now = runs.code_fingerprint(page)
    mine = [row for row in rows if row.get("fingerprint") == now]
    return (mine, len(rows) - len(mine)) if mine else (rows, 0)


def swept(rows: list[dict]) -> dict[str, list]:
    """Parameters with more than one value among some runs, those with most values first."""
    names = dict.fromkeys(name for row in rows for name in row["parameters"])
    values = {name: list(dict.fromkeys(row["parameters"].get(name) for row in rows)) for name in names}
    return dict(sorted(((n, v) for n, v in values.items() if len(v) > 1), key=lambda item: -len(item[1])))


def choose(page: pages.Page, rows: list[dict], claim: str, against: str) -> None:
    """A sentence when a claim or a parameter is not there, or was not swept."""
    import difflib

    known, there = claims.of_page(page.name, page.root / "book"), parameters.of_page(page.markdown)
    for name, names, what in ((claim, known, "claim"), (against, there, "parameter")):
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise (ClaimError if what == "claim" else RunError)(f"{page.name} has no {what} '{name}'{hint}")
    if not any(claim in row["results"] for row in rows):
        raise RunError(f"no finished run of {page.name} measured '{claim}'")
    if against not in swept(rows):
        also = ", ".join(swept(rows)) or "nothing"
        grid = f"`python -m lib sweep {page.name} --grid {against}=…`"
        raise RunError(f"all runs of {page.name} have the same {against} (what varies: {also}); {grid} varies it")


def draw(page: pages.Page, rows: list[dict], claim: str, against: str, group: str | None = None):
    """A matplotlib figure: a claim's measured values against one parameter, with tolerance, the book's value and the spread.

    `group` is what the band spreads over. Of what else varies, the parameter with most values gets a colour; parts of a claim
    get a panel each when colours are taken.
    """
    import seaborn

    from lib.press import plots

    one, varied = claims.of_page(page.name, page.root / "book")[claim], swept(rows)
    others = [name for name in varied if name not in (against, group) and name not in SEEDS]
    data = tidy(page, [row for row in rows if claim in row["results"]]).query("claim == @claim")
    parts = list(dict.fromkeys(data["part"]))
    colour = others[0] if others else "part" if len(parts) > 1 else None
    panels = parts[:6] if others and len(parts) > 1 else [None]
    fig, axes = plots.panels(min(len(panels), 3), math.ceil(len(panels) / 3), height=2.9, squeeze=False)
    book = claims.measured_in(page.name, page.root / "book").get(claim)
    default = parameters.of_page(page.markdown)[against].default
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in varied[against])
    for ax, part in zip(axes.flat, panels, strict=False):
        shown = data if part is None else data[data["part"] == part]
        shown = shown.assign(**{against: shown[against] if numbers else shown[against].astype(str)})
        if colour:
            shown = shown.assign(**{colour: shown[colour].astype(str)})
        shades = seaborn.color_palette("viridis", shown[colour].nunique()) if colour in others else None
        how = {"x": against, "y": "measured", "hue": colour, "palette": shades, "ax": ax}
        how = {key: value for key, value in how.items() if value is not None}
        seaborn.lineplot(shown, **how, errorbar=("pi", 100), marker="o", markersize=4, legend=bool(colour))
        seaborn.scatterplot(shown, **how, s=9, alpha=0.5, linewidth=0, legend=False)
        finish(ax, one, shown, against, book, part, default if numbers else str(default), numbers)
        ax.set(xlabel=against, ylabel=claim if part is None else part)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    return fig


def finish(ax, claim: claims.Claim, shown, against: str, book: dict | None, part: str | None, default, numbers: bool) -> None:
    """Scales, the shaded tolerance, the book's value, the legend."""
    kind, low, high = claims.relation(claim)
    values = shown["measured"]
    if numbers and min(shown[against]) > 0 and max(shown[against]) / min(shown[against]) >= 20:
        ax.set_xscale("log")
    if numbers and len(at := sorted(set(shown[against]))) <= 8:  # ticks where something was measured
        ax.set_xticks(at, [f"{value:g}" for value in at])
        ax.set_xticks([], minor=True)
    if kind == "true":
        ax.set_yticks([0, 1], ["no", "yes"])
        low, high = 0.5, math.inf
    elif (values > 0).all() and values.max() / values.min() >= 30:
        ax.set_yscale("log")
    there = [value for name, value in parts_of(book["measured"]).items() if part in (None, name)] if book else []
    on_axis = numbers or default in set(shown[against])
    for n, value in enumerate(there):
        ax.axhline(value, color="#111111", linestyle=":", linewidth=0.9, label="_")
        if on_axis:
            label = "the book" if n == 0 else "_"
            ax.plot([default], [value], "D", color="#111111", markersize=5, zorder=6, label=label, linestyle="none")
    bottom, top = ax.get_ylim()
    edges = [edge for edge in (low, high) if math.isfinite(edge) and (ax.get_yscale() == "linear" or edge > 0)]
    span = (top - bottom) * 0.08 if ax.get_yscale() == "linear" else 0
    bottom, top = min([bottom, *(edge - span for edge in edges)]), max([top, *(edge + span for edge in edges)])
    ax.axhspan(max(low, bottom), min(high, top), color="#1f8a50", alpha=0.10, linewidth=0, zorder=0, label="tolerated")
    for edge in edges:
        ax.axhline(edge, color="#1f8a50", linewidth=0.9, alpha=0.7, label="_")
    ax.set_ylim(bottom, top)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7, title=None)


def picture(fig, kind: str = "png") -> bytes:
    """A figure as the bytes of a file."""
    import matplotlib.pyplot as plt

    stream = io.BytesIO()
    fig.savefig(stream, format=kind, dpi=150, metadata={} if kind != "svg" else {"Date": None})
    plt.close(fig)
    return stream.getvalue()


def alternative(page: pages.Page, rows: list[dict], claim: str, against: str) -> str:
    """What a picture shows, in words."""
    one = claims.of_page(page.name, page.root / "book")[claim]
    data = tidy(page, [row for row in rows if claim in row["results"]]).query("claim == @claim").sort_values(against)
    means = data.groupby(against, sort=False)["measured"].mean()
    said = ", ".join(f"{value}: {claims.number(float(mean))}" for value, mean in list(means.items())[:8])
    return f"{claim} against {against}, means {said}{' …' if len(means) > 8 else ''}; tolerated: {one.tolerance_text()}"


# --- the report of a sweep -------------------------------------------------------------------------------------------


def write(page: pages.Page, rows: list[dict]) -> Path:
    """Write the report of some runs of a page as a file that opens with a double click."""
    names = sorted(row["run"] for row in rows)
    path = runs.folder_of(page) / f"sweep-{pages.digest(' '.join(names))[:8]}.html"
    files.write_whole(path, report(page, rows, path.parent), RunError)
    return path


def report(page: pages.Page, rows: list[dict], folder: Path) -> str:
    """The whole HTML file of a sweep: what was swept, verdicts by claim, one picture for each claim, all points."""
    title = plain.title_of(page, page.markdown.stem)
    finished = [row for row in rows if row["status"] == "finished"]
    varied = swept(rows)
    said = "; ".join(f"{name} = {', '.join(map(str, values))}" for name, values in varied.items()) or "nothing"
    failed = len(rows) - len(finished)
    body = [
        f'<p class="facts">{html.escape(page.name)} · a sweep of {len(rows)} points</p>',
        f"<h1>{sheet.phrase(title)}</h1>",
        f"<p><b>Swept:</b> {html.escape(said)}.{f' {failed} of the points failed.' if failed else ''}</p>",
        verdict_table(page, finished),
        *pictures(page, finished, varied),
        "<h2>Points</h2>",
        points_table(page, rows, varied, folder),
    ]
    return sheet.document(f"{title} · sweep", "\n".join(body))


def verdict_table(page: pages.Page, rows: list[dict]) -> str:
    """Each claim: its tolerance, the book's verdict, and how many points came to which."""
    tables = [{line.claim.id: line for line in facts.lines(page, row["results"])} for row in rows]
    body, classes = [], []
    for name, first in tables[0].items() if tables else ():
        met = [table[name].verdict_here for table in tables if table[name].here is not None]
        if not met:
            continue
        counts = "<br>".join(f"{met.count(word)} × {sheet.verdict(word)}" for word in dict.fromkeys(met))
        body.append(
            [sheet.claim(first.claim), html.escape(first.claim.tolerance_text()), sheet.verdict(first.verdict_there), counts]
        )
        classes.append("apart" if any(word != first.verdict_there for word in met) else "")
    return sheet.table(["claim", "tolerance", "verdict in the book", "points"], body, classes) if body else ""


def pictures(page: pages.Page, rows: list[dict], varied: dict[str, list]) -> list[str]:
    """One picture for each claim that was measured, against the parameter with most values that is not a seed."""
    axes = [name for name in varied if name not in SEEDS] or list(varied)
    if not axes or not rows:
        return []
    group = next((name for name in SEEDS if name in varied and name != axes[0]), None)
    known = claims.of_page(page.name, page.root / "book")
    measured = [name for name in known if any(name in row["results"] for row in rows)]
    blocks = [f"<h2>Measured against <code>{html.escape(axes[0])}</code></h2>"]
    for name in measured[:MOST]:
        drawn = base64.b64encode(picture(draw(page, rows, name, axes[0], group))).decode()
        about = {
            "figure": {"caption": f"{known[name].claim} (`{name}`)"},
            "image": {"alt": alternative(page, rows, name, axes[0])},
        }
        blocks.append(sheet.figure(f"data:image/png;base64,{drawn}", about))
    if len(measured) > MOST:
        blocks.append(f"<p>{len(measured) - MOST} more claims: <code>python -m lib plot</code> draws one.</p>")
    return blocks


def points_table(page: pages.Page, rows: list[dict], varied: dict[str, list], folder: Path) -> str:
    """All points: what was swept, how many verdicts are the book's, seconds, and a link to the point's own report."""
    body = []
    for row in sorted(rows, key=lambda row: [(isinstance(v, str), v) for v in (row["parameters"].get(n) for n in varied)]):
        found = [line for line in facts.lines(page, row["results"]) if line.here is not None]
        same = f"{sum(not line.differs for line in found)} of {len(found)}"
        there = (folder / f"{row['run']}.html").exists()
        name = html.escape(row["run"][:8])
        link = f'<a href="{html.escape(row["run"])}.html">{name}</a>' if there else name
        words = [html.escape(str(row["parameters"].get(name))) for name in varied]
        body.append([link, *words, same if row["status"] == "finished" else "failed", f"{row['seconds']:.1f}"])
    return sheet.table(["run", *varied, "verdicts that are the book's", "seconds"], body)
