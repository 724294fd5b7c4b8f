"""The report of one run: a file beside its row that opens with a double click; what it measured, then the page."""

import html
import re
from pathlib import Path

from lib.press import files, pages
from lib.press.errors import RunError
from lib.press.notebooks import plain
from lib.press.reports import facts, sheet
from lib.press.verdicts import rows


def path_of(run: facts.Run) -> Path:
    """Where the report of a run lies: beside its row."""
    from lib.press.workbench import runs

    return runs.folder_of(run.page) / f"{run.name}.html"


def write(page: pages.Page, row: dict, notebook: dict) -> Path:
    """Write the report of a run beside its row, and return its path."""
    run = facts.Run(row["run"], page, row, notebook)
    files.write_whole(path_of(run), report(run), RunError)
    return path_of(run)


def report(run: facts.Run) -> str:
    """The whole HTML file of one run."""
    notebook = plain.natural(run.notebook) if run.notebook else {"cells": []}
    context = plain.Context(run.page, notebook)
    title = plain.title_of(run.page, run.page.markdown.stem)
    body = [f'<p class="facts">{html.escape(run.page.name)} · {run.title}</p>', f"<h1>{sheet.phrase(title)}</h1>", about(run)]
    if run.row["status"] == "failed":
        body.append(f'<p><b>This run failed.</b></p><pre class="wrong">{html.escape(run.row.get("error") or "")}</pre>')
    found = facts.lines(run.page, run.results)
    apart = [line for line in found if line.differs]
    body += [claims_table(found, ("book", "this run"), ("in the book", "here"), apart)] if found else []
    body += [parameters_table(run), '<hr><p class="facts">The page as this run executed it:</p>']
    body.append(sheet.page(notebook, context))
    return sheet.document(f"{title} · {run.title}", "\n".join(body))


def about(run: facts.Run) -> str:
    """When, where, how long; what is not the book's; how many verdicts agree."""
    row = run.row
    versions = ", ".join(f"{name} {version}" for name, version in (row.get("versions") or {}).items())
    when = (row.get("finished") or "").replace("T", " ")[:16]
    seconds = f"{row['seconds']:.0f} s on {row.get('device', 'cpu')}" if row.get("seconds") is not None else ""
    parts = [when, seconds, row.get("machine") or "", versions, f"code {row['fingerprint']}" if row.get("fingerprint") else ""]
    said = facts.summary(facts.lines(run.page, run.results))
    other = facts.words(facts.changed(run.page, row["parameters"]))
    return (
        f"<p><b>{html.escape(said)}</b> It ran with {html.escape(other)}.</p>"
        f'<p class="facts">{html.escape(" · ".join(filter(None, parts)))}</p>'
    )


def claims_table(found: list[facts.Line], names: tuple[str, str], where: tuple[str, str], apart: list[facts.Line]) -> str:
    """Each claim: tolerance, value and verdict on two sides with names; the lines `apart` are marked."""
    columns = ["claim", "tolerance", *names, *(f"verdict {side}" for side in where)]
    body = [
        [
            sheet.claim(line.claim),
            rows.to_html(line.claim.tolerance_text()),
            value(line, line.there),
            value(line, line.here),
            sheet.verdict(line.verdict_there),
            sheet.verdict(line.verdict_here),
        ]
        for line in found
    ]
    classes = ["apart" if line in apart else "" for line in found]
    return sheet.table(columns, body, classes, {name: "value" for name in names})


def value(line: facts.Line, record: dict | None) -> str:
    """A measured value as HTML, its parts on lines of their own, with intervals over seeds if there are any."""
    if record is None:
        return "–"
    measured, like = record["measured"], (line.here or record)["measured"]
    if isinstance(measured, dict) and isinstance(like, dict) and set(measured) == set(like):
        measured = {name: measured[name] for name in like}  # the book's notebooks keep names in alphabetical order
    return re.sub(r"\[[^][<]*]", r'<span class="interval">\g<0></span>', rows.ours(line.claim, measured, record.get("interval")))


def parameters_table(run: facts.Run) -> str:
    """The run's parameters beside the book's; those that differ are marked."""
    from lib.press import parameters

    known = parameters.of_page(run.page.markdown)
    body, classes = [], []
    for name, here in run.row["parameters"].items():
        if name in known:
            cells = (f"<code>{html.escape(name)}</code>", f"{known[name].default!r}", f"{here!r}", known[name].help)
            body.append([cells[0], *(html.escape(cell) for cell in cells[1:])])
            classes.append("apart" if here != known[name].default else "")
    if not body:
        return ""
    table = sheet.table(["parameter", "book", "this run", "meaning"], body, classes)
    return f"<details><summary>all {len(body)} parameters</summary>{table}</details>"
