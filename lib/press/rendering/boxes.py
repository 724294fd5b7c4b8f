"""Boxes on a page: at a glance, its claims, its parameters, its recorded runs."""

from docutils.parsers.rst import directives

from lib.press import claims, pages, parameters
from lib.press.rendering.generated import (
    Generated,
    badge,
    count_words,
    duration,
    plural,
    score,
    scoreboard,
    scoreboard_table,
    several,
    verdict_of,
)
from lib.press.workbench import runs


class Glance(Generated):
    """The box that opens a page: paper, figures, claims, seconds, downloads."""

    option_spec = {"paper": directives.unchanged_required, "remakes": directives.unchanged}

    def text(self) -> str:
        mine = claims.of_page(self.page.name, self.book)
        errata = {claim.erratum for claim in mine.values() if claim.erratum}
        facts = [f"**Paper** {self.options['paper']}"]
        if "remakes" in self.options:
            facts.append(f"**Remakes** {self.options['remakes']}")
        checks = plural(sum(not claim.erratum for claim in mine.values()), "claim")
        facts.append(f"**Checks** {checks}" + (f", {plural(len(errata), 'erratum', 'errata')}" if errata else ""))
        taken = pages.seconds(self.root).get(self.page.name)
        if taken is not None:
            facts.append(f"**Runs in** {taken:.0f} s on a laptop" if taken >= 1 else "**Runs in** under a second")
        name = self.page.markdown.name
        files = f"{{download}}`notebook <{self.page.notebook.name}>`, {{download}}`MyST source <{name}>`"
        box = f"````{{admonition}} At a glance\n:class: at-a-glance\n{' · '.join(facts)} · **Download** {files}\n````"
        return box + (self.chapter() if self.is_first() else "")

    def is_first(self) -> bool:
        """Whether this is the first page of its part, which shows the whole part's verdicts."""
        folder, name = self.page.name.split("/")
        return self.contents.partition(f"file: book/{folder}/")[2].startswith(f"{name}\n")

    def chapter(self) -> str:
        folder = self.page.name.split("/")[0]
        total = score([folder], self.book)
        words = f"All {sum(total.values())} claims of this part: {count_words(total)}"
        return f"\n\n``````{{dropdown}} {words}\n{scoreboard_table(folder, self.book, self.words)}\n``````"


class ClaimList(Generated):
    """The page's claims, numbered, each with its verdict."""

    def text(self) -> str:
        measured = claims.measured_in(self.page.name, self.book)
        lines = []
        for claim in claims.of_page(self.page.name, self.book).values():
            kind = {"printed": "*As printed:* ", "corrected": "*Corrected:* ", "beyond": "*Beyond the paper:* "}.get(
                claim.kind, ""
            )
            lines.append(f"1. {kind}{claim.claim} ({claim.where}) {badge(verdict_of(claim, measured), claim)}")
        return "\n".join(lines) or "This page checks no claim."


class ParameterTable(Generated):
    """The page's parameters: type, the book's value, the paper's value, meaning."""

    def text(self) -> str:
        known = parameters.of_page(self.page.markdown)
        try:
            paper = runs.preset(self.page, "paper")
        except runs.RunError:
            paper = {}
        rows = ["| parameter | book | paper | meaning |", "|---|---|---|---|"]
        for p in known.values():
            big = f"`{paper[p.name]!r}`" if p.name in paper else "same"
            rows.append(f"| `{p.name}` | `{p.default!r}` | {big} | {p.help} |")
        return "\n".join(rows)


class Recorded(Generated):
    """Recorded runs of the page, at sizes that a laptop does not reach, beside what the laptop measured."""

    def text(self) -> str:
        kept = runs.recorded(self.page)
        return "\n\n".join(self.one(row) for row in kept) or "No run at a larger size is recorded yet."

    def one(self, row: dict) -> str:
        """What the run is; where its verdicts differ from the page's, and claims that it alone checks; then all of it, folded."""
        known = parameters.of_page(self.page.markdown)
        other = {name: value for name, value in row["parameters"].items() if name in known and value != known[name].default}
        sizes = ", ".join(f"`{name}={value}`" for name, value in other.items()) or "the page's own parameters"
        state = "" if row["current"] else " **Recorded under an older version of the code.**"
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
