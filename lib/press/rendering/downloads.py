"""The verdicts for others to build on: all rows as CSV and JSON with a written schema, and schema.org data on verdict pages."""

import csv
import io
import json
from pathlib import Path

from lib.press import claims, files, pages
from lib.press.rendering.generated import parts
from lib.press.verdicts import rows, standing

FIELDS = {
    "id": "name of the row; with the page it makes the row's address: <page>.html#<id>",
    "paper": "folder of the paper that the row belongs to",
    "page": "page of the book that checks it",
    "statement": "the statement in our words, Markdown with $…$ mathematics",
    "author": "whose statement it is: paper, correction (of a slip in print), book",
    "rank": "main, supporting, or check (of our own code; counted nowhere)",
    "where": "where the paper says it",
    "figure": "the paper's figure",
    "table": "the paper's table",
    "equation": "the paper's equation",
    "paper_value": "the value that the paper gives, if it gives one",
    "bound": "what a measurement must satisfy: '= x' with a tolerance, '< x', '> x', 'in [a, b]' or 'true'",
    "tolerance": "of '=', absolute or in per cent",
    "reason": "where the bound comes from",
    "measured": "what the book's own run measured: a number, true or false, or several with names",
    "interval": "over seeds: mean, low, high (95 %, Student's t), spread, seeds; or these for each part",
    "verdict": "the verdict that counts; where a recorded run at a larger size disagrees with the laptop, the recorded one",
    "laptop_verdict": "what the book's own run shows, where a recorded run decided otherwise",
    "note": "what we see instead, and why",
    "reply": "what the paper's authors replied",
    "run": "the recorded run that decided, or 'book'",
    "fingerprint": "hash of the code, data and pinned versions that the page ran with",
}


def table(root: Path) -> list[dict]:
    """All rows of the book, a mapping of `FIELDS` each, in reading order."""
    book, found, prints = root / "book", [], {}
    for part in parts(book):
        for claim, record in standing.every(book, [part]):
            if claim.page not in prints:
                racing = (pages.stored(pages.Page(claim.page, root)) or {"metadata": {}})["metadata"].get("racing", {})
                prints[claim.page] = pages.digest(json.dumps(racing.get("fingerprint", {}), sort_keys=True))
            recorded = claims.recorded_in(claim.page, book).get(claim.id) if claim.finding else None
            row = {
                "id": claim.id,
                "paper": part,
                "page": claim.page,
                "statement": claim.claim,
                "paper_value": claim.paper,
                "bound": claim.expect,
                "measured": record["measured"] if record else None,
                "interval": record.get("interval") if record else None,
                "verdict": standing.verdict(claim, record),
                "laptop_verdict": standing.on_laptop(claim, record),
                "run": recorded["run"] if recorded else "book",
                "fingerprint": prints[claim.page],
            }
            found.append({name: row[name] if name in row else getattr(claim, name) for name in FIELDS})
    return found


def as_csv(found: list[dict]) -> str:
    """The table as CSV; what has parts is JSON in its cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(FIELDS), lineterminator="\n")
    writer.writeheader()
    for row in found:
        writer.writerow({name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()})
    return text.getvalue()


def json_schema() -> dict:
    """The written schema of the JSON table (JSON Schema, draft 2020-12)."""
    several = {"type": ["number", "boolean", "object", "array", "null"]}
    kinds = {"measured": several, "interval": {"type": ["object", "null"]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Racing to Simplicity: statements and verdicts",
        "type": "array",
        "items": {
            "type": "object",
            "required": list(FIELDS),
            "additionalProperties": False,
            "properties": {name: kinds.get(name, {"type": "string"}) | {"description": text} for name, text in FIELDS.items()},
        },
    }


def write(app, error) -> None:
    """After a build: verdicts.csv, verdicts.json and verdicts.schema.json beside the scoreboard."""
    folder = Path(app.outdir) / "book"
    if error or app.builder.name != "html" or not folder.exists():
        return
    found = table(Path(app.srcdir))
    files.write_whole(folder / "verdicts.csv", as_csv(found))
    files.write_whole(folder / "verdicts.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    files.write_whole(folder / "verdicts.schema.json", json.dumps(json_schema(), indent=1) + "\n")


RATINGS = {"not reproduced": 1, "reproduced in part": 2, "undetermined": 2, "reproduced": 3}


def claim_review(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """schema.org ClaimReview data on verdict pages, one for each main result."""
    folder, _, name = pagename.removeprefix("book/").partition("/")
    book = Path(app.srcdir) / "book"
    if name != "index" or folder not in claims.papers(book) or "body" not in context:
        return
    title = claims.title(folder, book)[0]
    reviews = []
    for claim, record in standing.every(book, [folder]):
        verdict = standing.verdict(claim, record)
        if claim.rank != "main" or claim.author != "paper" or verdict not in RATINGS:
            continue
        rating = {"ratingValue": RATINGS[verdict], "worstRating": 1, "bestRating": 3, "alternateName": verdict}
        reviews.append(
            {
                "@context": "https://schema.org",
                "@type": "ClaimReview",
                "claimReviewed": rows.plain(claim.result),
                "url": f"{claim.page.split('/')[1]}.html#{claim.id}",
                "itemReviewed": {"@type": "Claim", "appearance": {"@type": "ScholarlyArticle", "headline": title}},
                "reviewRating": {"@type": "Rating"} | rating,
                "author": {"@type": "Organization", "name": "The Racing to Simplicity authors"},
            }
        )
    if reviews:
        text = json.dumps(reviews, ensure_ascii=False).replace("</", "<\\/")
        context["body"] += f'<script type="application/ld+json">{text}</script>'
