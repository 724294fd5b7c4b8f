"""Boxes on a page: at a glance, the short answer, its claims, its parameters, its recorded runs."""

from docutils import nodes
from docutils.parsers.rst import directives

from lib.press import claims, pages, parameters
from lib.press.rendering.generated import Generated, badge, duration, plural, scoreboard, several, verdict_of
from lib.press.verdicts import recordings
from lib.press.workbench import runs


def folded(title: str, text: str) -> str:
    """A text behind a title that opens it."""
    return f"``````{{dropdown}} {title}\n{text}\n``````"


class Glance(Generated):
    """The box that opens a page: paper, figures, claims, seconds, downloads."""

    option_spec = {"paper": directives.unchanged_required, "remakes": directives.unchanged}

    def text(self) -> str:
        mine = claims.of_page(self.page.name, self.book)
        errata = {claim.erratum for claim in mine.values() if claim.erratum}
        facts = [f"**Paper** {self.options['paper']}"]
        if "remakes" in self.options:
            facts.append(f"**Remakes** {self.options['remakes']}")
        checks = plural(sum(not claim.erratum and claim.rank != "check" for claim in mine.values()), "claim")
        facts.append(f"**Checks** {checks}" + (f", {plural(len(errata), 'slip')}" if errata else ""))
        taken = pages.seconds(self.root).get(self.page.name)
        if taken is not None:
            facts.append(f"**Runs in** {taken:.0f} s on a laptop" if taken >= 1 else "**Runs in** under a second")
        name = self.page.markdown.name
        files = f"{{download}}`notebook <{self.page.notebook.name}>`, {{download}}`MyST source <{name}>`"
        return f"````{{admonition}} At a glance\n:class: at-a-glance\n{' · '.join(facts)} · **Download** {files}\n````"


class Answer(Generated):
    """The short answer with the figure that shows it, drawn by a cell further down, on the page's first screen."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        alt = figure_alt(self.page, name)
        if alt is None:
            raise self.error(f"no executed cell of {self.page.name} draws a figure named {name}")
        self.env.note_dependency(str(self.page.notebook))
        picture = f"```{{image}} /_build/figures/{name}.png\n:alt: {alt}\n:class: hero\n:target: '#{name}'\n```"
        shown = f"````{{div}} figure\n{picture}\n````"  # a figure to those who look for figures, without a number of its own
        return self.parse(f"`````{{div}} answer\n**The short answer.** {chr(10).join(self.content)}\n\n{shown}\n`````")


def figure_alt(page: pages.Page, name: str) -> str | None:
    """The alternative text of a figure of a page's executed notebook; None when there is no such figure."""
    for cell in (pages.stored(page) or {"cells": []})["cells"]:
        shown = cell["metadata"].get("mystnb", {})
        if shown.get("figure", {}).get("name") == name and cell.get("outputs"):
            return shown.get("image", {}).get("alt") or name
    return None


class ClaimList(Generated):
    """The page's claims, each with its verdict and a link to the row that checks it; `:folded:` behind their number."""

    option_spec = {"folded": directives.flag}

    def text(self) -> str:
        measured = claims.measured_in(self.page.name, self.book)
        whose = {"printed": "*As printed:* ", "corrected": "*Corrected:* ", "beyond": "*This book:* "}
        groups = {"main": [], "supporting": [], "check": []}
        for claim in claims.of_page(self.page.name, self.book).values():
            verdict = verdict_of(claim, measured)
            link = f"{{claim}}`¶ <{claim.id}>`"
            groups[claim.rank].append(
                f"1. {whose.get(claim.kind, '')}{claim.claim} ({claim.where}) {badge(verdict, claim)} {link}"
            )
        heads = {"main": "**Main results**", "supporting": "**Supporting statements**", "check": "**Checks of our own code**"}
        text = "\n\n".join(f"{heads[rank]}\n\n" + "\n".join(lines) for rank, lines in groups.items() if lines)
        if not text:
            return "This page checks no claim."
        return (
            folded(f"What this page checks ({plural(sum(map(len, groups.values())), 'claim')})", text)
            if "folded" in self.options
            else text
        )


class ParameterTable(Generated):
    """The page's parameters: type, the book's value, the paper's value, meaning; `:folded:` behind their number."""

    option_spec = {"folded": directives.flag}

    def text(self) -> str:
        known = parameters.of_page(self.page.markdown)
        rows = ["| parameter | book | paper | meaning |", "|---|---|---|---|"]
        for p in known.values():
            rows.append(f"| `{p.name}` | `{p.default!r}` | {runs.stated(self.page, p)} | {p.help} |")
        table = "\n".join(rows)
        return folded(f"The parameters ({len(known)})", table) if "folded" in self.options else table


class Recorded(Generated):
    """Recorded runs of the page, at sizes that a laptop does not reach, beside what the laptop measured."""

    def text(self) -> str:
        kept = recordings.recorded(self.page)
        return "\n\n".join(self.one(row) for row in kept) or "No run at a larger size is recorded yet."

    def one(self, row: dict) -> str:
        """What the run is; where its verdicts differ from the page's, and claims that it alone checks; then all of it, folded."""
        known = parameters.of_page(self.page.markdown)
        other = {name: value for name, value in row["parameters"].items() if name in known and value != known[name].default}
        sizes = ", ".join(f"`{name}={value}`" for name, value in other.items()) or "the page's own parameters"
        state = "" if row["current"] else " **Recorded under an older version of the code.**"
        if row["still"]:
            about = row["still"]
            proof = f"{plural(about['compared'], 'number')} of the page in its smallest size, largest difference"
            state = f" The code has changed since, but not what it measures ({proof} {about['difference']:.1g})."
        cost = f"{duration(row['seconds'])} on {row['device']} ({row['machine']}, torch {row['versions']['torch']})"
        mine, here = claims.of_page(self.page.name, self.book), claims.measured_in(self.page.name, self.book)
        apart, everything = [], []
        for name, record in row["results"].items():
            if name not in mine:  # the claim has been renamed or given up since
                continue
            claim, verdict = mine[name], claims.judge(mine[name], record["measured"])
            only_here = claim.verdict == "recorded" or name not in here
            on_page = "–" if only_here else several(claim, here[name]["measured"], record["measured"])
            cells = [claim.claim, on_page, several(claim, record["measured"]), badge(verdict)]
            everything.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            if only_here or verdict != here[name]["verdict"]:
                apart.append(everything[-1])
        head = ["| claim | on this page | recorded | verdict there |", "|---|---|---|---|"]
        total = plural(len(everything), "check")
        same = f"{len(everything) - len(apart)} of {total} have the verdict that they have on this page."
        if apart:
            same += " The others, and what only a run of this size can tell:\n\n" + scoreboard(head + apart)
        folded = f"``````{{dropdown}} All {total} of this run\n{scoreboard(head + everything)}\n``````"
        return f"Run `{row['run']}` of {row['finished'][:10]}: {sizes}; {cost}.{state} {same}\n\n{folded}"
