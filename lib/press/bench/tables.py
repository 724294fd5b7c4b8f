"""A record of the bench in words and tables, for a terminal and for the page on performance."""

from collections.abc import Iterable

from lib.press.bench.record import PRECISIONS


def digits(value: float) -> str:
    """Two digits, without an exponent: 0.057, 3.7, 65, 1,300."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.6f}".rstrip("0").rstrip(".")


def time_words(spread: dict[str, float]) -> str:
    """A time with its range in a unit that fits: '29 µs (28–31)'."""
    size, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if spread["median"] >= s), (1e-6, "µs"))
    median, low, high = (digits(spread[key] / size) for key in ("median", "low", "high"))
    return f"{median} {unit} ({low}–{high})"


def ratio_words(spread: dict[str, float]) -> str:
    """'102 times (98–110)'."""
    median, low, high = (digits(spread[key]) for key in ("median", "low", "high"))
    return f"{median} times ({low}–{high})"


def share_words(peak: dict) -> str:
    """'41 % of the best arithmetic'."""
    return f"{digits(100 * peak['share'])} % of the best {peak['bound']}"


def slope_words(grown: dict) -> str:
    """'size^0.97 ± 0.02; operations counted: 1.00'."""
    return f"size^{grown['slope']:.2f} ± {grown['error']:.2f}; operations counted: {grown['expected']:.2f}"


def peak_sentence(best: dict[str, float]) -> str:
    """What the machine can do at best."""
    rates = f"{best['float32'] / 1e9:.0f} and {best['float64'] / 1e9:.0f} billion operations a second in products of matrices"
    return f"this machine at its best, on one core: {rates} (single, double precision), {best['memory'] / 1e9:.0f} GB/s of memory"


def author_sentence(name: str, row: dict) -> str:
    """What an author's program took beside ours, or why it was not timed."""
    if "sentence" in row:
        return f"{name}: {row['sentence']}"
    ratios = ", ".join(f"{digits(ratio)} times in {precision}" for precision, ratio in row["ratio"].items())
    return f"{name}: {digits(row['theirs']['bare'])} {row['unit']} without start and writing; ours costs less, {ratios}"


def _table(heads: list[str], rows: Iterable[list[str]], numbers: int) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * (len(heads) - numbers) + "--:|" * numbers]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def ratio_table(record: dict) -> str:
    """Every fast path against its plain program, in Markdown: a row for each precision."""
    rows = []
    for row in record["cases"].values():
        for i, (precision, found) in enumerate(row["precisions"].items()):
            what = [row["title"], f"{row['plain']}"] if i == 0 else ["", ""]
            peak = share_words(found["peak"]) if "peak" in found else "–"
            unit = f" by {row['unit']}"
            times = [time_words(found["fast"]) + (unit if i == 0 else ""), time_words(found["plain"])]
            rows.append([*what, precision, *times, ratio_words(found["ratio"]), f"{found['difference']:.0e}", peak])
    heads = ["fast path", "plain program", "precision", "ours", "plain", "plain over ours", "largest difference", "share of peak"]
    return _table(heads, rows, 5)


def growth_table(record: dict) -> str:
    """Slopes of cost against size beside those of the operations counted, in Markdown."""
    rows = []
    for row in record["cases"].values():
        for i, (size, grown) in enumerate(row["growth"].items()):
            values = f"{size}, {grown['sizes'][0]:,} to {grown['sizes'][-1]:,}"
            slopes = [f"{grown['slope']:.2f} ± {grown['error']:.2f}", f"{grown['expected']:.2f}"]
            rows.append([row["title"] if i == 0 else "", values, *slopes])
    return _table(["fast path", "size", "slope measured", "of operations"], rows, 2)


def authors_table(record: dict) -> str:
    """The authors' programs beside ours, in Markdown; a sentence for each that could not be timed."""
    rows, sentences = [], []
    for name, row in record["authors"].items():
        commit = f" at {row['commit']}" if row.get("commit") else ""
        if "sentence" in row:
            sentences.append(f"{name}{commit}: {row['sentence']}.")
            continue
        cells = [f"{name}{commit}", row["unit"], digits(row["theirs"]["whole"]), digits(row["theirs"]["bare"])]
        for precision in PRECISIONS:
            cells.append(f"{digits(row['ours'][precision])} ({digits(row['ratio'][precision])} times)")
        rows.append(cells)
    heads = ["program", "unit", "whole", "without start and writing", "ours, float32", "ours, float64"]
    return "\n\n".join([*([_table(heads, rows, 4)] if rows else []), *sentences])
