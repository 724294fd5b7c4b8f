"""One row of a page's verdicts: as HTML with typeset mathematics and an address of its own, as text, and as a record."""

import html
import re

# A printed form that fails beside its correction is a slip, not a failed claim; what is our own cannot be "reproduced".
SLIP = "slip in print"
OURS = {"reproduced": "holds", "reproduced in part": "holds in part", "not reproduced": "does not hold"}


def word(claim, verdict: str) -> str:
    """A verdict as a reader sees it: a printed form that fails is a slip, a finding of this book holds or does not."""
    if claim.kind == "printed" and verdict in ("not reproduced", "reproduced in part"):
        return SLIP
    return OURS.get(verdict, verdict) if claim.author != "paper" else verdict


def to_html(text: str) -> str:
    """The small Markdown of claims as HTML: `$…$`, code, **strong** and *emphasis*; everything else is escaped."""
    pieces = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    done = []
    for piece in pieces:
        safe = html.escape(piece[1:-1] if piece[:1] in "$`" and len(piece) > 2 else piece)
        if piece.startswith("$") and len(piece) > 2:
            done.append(rf'<span class="math notranslate nohighlight">\({safe}\)</span>')
        elif piece.startswith("`") and len(piece) > 2:
            done.append(f"<code>{safe}</code>")
        else:
            strong = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<strong>\1</strong>", safe)
            done.append(re.sub(r"(?<!\w)\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)", r"<em>\1</em>", strong))
    return "".join(done)


def plain(text: str) -> str:
    """The same without its marks, for titles and search: `$\\sqrt{M}$` becomes \\sqrt{M}."""
    return re.sub(r"\$([^$]+)\$", r"\1", re.sub(r"\*\*|`", "", text))


def with_interval(claim, value, interval: dict | None) -> str:
    """A measured value with its range over seeds: 0.42 [0.40, 0.44]; beside a worst case it says that the range is the mean's."""
    if not interval:
        return claim.show(value)
    of_mean = "" if abs(value - interval["mean"]) <= 1e-9 * abs(interval["mean"]) else "; mean over seeds in "
    return f"{claim.show(value)}{of_mean or ' '}[{claim.show(interval['low'])}, {claim.show(interval['high'])}]"


def ours(claim, measured, interval: dict | None = None, split: str = "<br>") -> str:
    """What was measured, as HTML, its parts on lines of their own, with intervals and the number of seeds."""
    parts = measured if isinstance(measured, dict) else {"": measured}
    ranges = interval or {}
    by_part = ranges if isinstance(measured, dict) and not isinstance(ranges.get("seeds"), int) else {"": ranges}
    lines = []
    for name, value in parts.items():
        text = html.escape(with_interval(claim, value, by_part.get(name)))
        lines.append(f"{html.escape(name)}: {text}" if name else text)
    counts = sorted({one["seeds"] for one in by_part.values() if one})
    more = f"{split}<small>n = {', '.join(map(str, counts))}</small>" if counts else ""
    return split.join(lines) + more


def show(claim, measured, verdict: str, recorded: str = "", interval: dict | None = None) -> None:
    """Show one row and leave its record in the output's metadata, for the scoreboard.

    `recorded` says when and at what cost a recorded run measured it; `interval` is the range over seeds.
    """
    from lib.press import claims  # which shows its rows through this module

    columns = {"claim": 38, "paper": 13, "ours": 22, "tolerance": 12, "verdict": 15}  # widths in per cent
    said = word(claim, verdict)
    link = f'<a class="anchor" href="#{html.escape(claim.id)}" title="the address of this result">¶</a>'
    cells = {
        "claim": f"{to_html(claim.claim)} {link}",
        "paper": to_html(claim.paper or "–"),
        "ours": ours(claim, measured, interval),
        "tolerance": to_html(claim.tolerance_text()),
        "verdict": html.escape(f"{said} ({recorded})" if recorded else said),
    }
    widths = "".join(f'<col style="width: {width}%">' for width in columns.values())
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "".join(f'<td class="{name}">{cell}</td>' for name, cell in cells.items())
    style = f"{verdict.replace(' ', '-')} {claim.kind} {claim.rank}"
    table = (
        f'<table class="check {style}" id="{html.escape(claim.id)}" title="{html.escape(claim.id)}: {html.escape(claim.reason)}">'
        f"<colgroup>{widths}</colgroup><thead><tr>{head}</tr></thead><tbody><tr>{body}</tr></tbody></table>"
    )
    text = f"[{said}] {claim.id}: ours {claim.show(measured)} | paper {claim.paper or '–'} | {claim.tolerance_text()}"
    record = {"id": claim.id, "measured": measured, "verdict": "recorded" if recorded else verdict}
    record |= {"interval": interval} if interval else {}
    claims.publish({"text/plain": text, "text/html": table}, {"racing": record})
