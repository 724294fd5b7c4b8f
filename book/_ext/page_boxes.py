"""Boxes on a page: at a glance, the short answer, its claims, its parameters, its recorded runs."""

import downloads
from base import Generated, badge, counted, div, dropdown, duration, several
from docutils import nodes
from docutils.parsers.rst import directives

from lib import claims
from lib.book import freshness, parameters, runs, verdicts
from lib.book.verdicts import plural


class Box(Generated):
    """A box on the page whose claims, parameters or runs it shows."""

    shows = "claims"


class Glance(Box):
    """The box that opens a page: paper, figures, claims, seconds, downloads."""

    option_spec = {"paper": directives.unchanged_required, "remakes": directives.unchanged}

    def text(self) -> str:
        facts = [f"**Paper** {self.options['paper']}"]
        facts += [f"**Remakes** {self.options['remakes']}"] if "remakes" in self.options else []
        facts.append(f"**Checks** {counted(self.rows_of(self.page), checks=False)}")
        taken = freshness.seconds(self.root).get(self.page.name)
        if taken is not None:
            facts.append(f"**Runs in** {taken:.0f} s on a laptop" if taken >= 1 else "**Runs in** under a second")
        notebook = downloads.readable(self.page).relative_to(self.root).as_posix()
        files = f"{{download}}`notebook </{notebook}>`, {{download}}`MyST source <{self.page.markdown.name}>`"
        return f"````{{admonition}} At a glance\n:class: at-a-glance\n{' · '.join(facts)} · **Download** {files}\n````"


class Answer(Box):
    """The short answer with the figure that shows it, drawn by a cell further down, on the page's first screen."""

    required_arguments = 1
    has_content = True

    def text(self) -> str:
        name = self.arguments[0]
        found = self.picture(self.page, name)
        if found is None:
            raise self.error(f"no executed cell of {self.page.name} draws a figure named {name}")
        picture = f"```{{image}} {found[0]}\n:alt: {found[1]}\n:class: hero\n:target: '#{name}'\n```"
        shown = div("figure", [picture])  # a figure to those who look for figures, without a number of its own
        return f"`````{{div}} answer\n**The short answer.** {chr(10).join(self.content)}\n\n{shown}\n`````"


HEADS = {"main": "**Main results**", "supporting": "**Supporting statements**", "check": "**Checks of our own code**"}
WHOSE = {"printed": "*As printed:* ", "corrected": "*Corrected:* ", "beyond": "*This book:* "}
LEGEND = (
    "In the rows below, *ours* is what we measured and *tolerance* the bound that it must meet; [low, high] is the 95 % interval "
    "of the mean over *n* networks (Student's t, or Wilson's for a fraction of networks); *in part*: some of the parts hold."
)


class ClaimList(Box):
    """The page's claims, each with its verdict and a link to the row that checks it; `:folded:` behind their number."""

    option_spec = {"folded": directives.flag}

    def text(self) -> str:
        rows = self.rows_of(self.page)
        if not rows:
            return "This page checks no claim."
        groups = {rank: [] for rank in HEADS}
        for claim, record in rows:
            verdict, link = verdicts.verdict(claim, record), f"{{claim}}`¶ <{claim.id}>`"
            said = badge(verdict, claims.word(claim, verdict) + (" (recorded)" if claim.finding else ""))
            groups[claim.rank].append(f"1. {WHOSE.get(claim.kind, '')}{claim.claim} ({claim.where}) {said} {link}")
        text = "\n\n".join(f"{HEADS[rank]}\n\n" + "\n".join(lines) for rank, lines in groups.items() if lines)
        box = dropdown(f"What this page checks ({counted(rows)})", text) if "folded" in self.options else text
        return f"{box}\n\n{div('small-print', [LEGEND])}"


class ParameterTable(Box):
    """The page's parameters with the book's and the paper's values, and how to run the paper's size at what cost."""

    option_spec = {"folded": directives.flag}

    def text(self) -> str:
        known = parameters.of_page(self.page)
        lines = ["| parameter | book | paper | meaning |", "|---|---|---|---|"]
        for p in known.values():
            lines.append(f"| `{p.name}` | `{p.default!r}` | {parameters.stated(self.page, p)} | {p.help} |")
        table, sizes = "\n".join(lines), parameters.sizes(self.page)
        if sizes.paper:
            device = " (on a GPU with `--device cuda`)" if "device" in known else ""
            table += f"\n\nAt the paper's size: `python -m lib run {self.page.name} --preset paper`{device}. Cost: {sizes.cost}."
        words = f"The parameters ({len(known)})" + (" and the paper's size" if sizes.paper else "")
        return dropdown(words, table) if "folded" in self.options else table


class Recorded(Box):
    """Recorded runs of the page, at sizes that a laptop does not reach, beside what the laptop measured; nothing without one."""

    def build(self) -> list[nodes.Node]:
        kept = runs.recorded(self.page)
        return self.parse("\n\n".join(map(self.one, kept))) if kept else []

    def one(self, row: dict) -> str:
        """What the run is; where its verdicts differ from the page's, and claims that it alone checks; then all of it, folded."""
        other = parameters.difference(self.page, row["parameters"])
        sizes = ", ".join(f"`{name}={value}`" for name, value in other.items()) or "the page's own parameters"
        machine = f"{row['machine']}, torch {row['versions']['torch']}" if row.get("versions") else row["machine"]
        facts = [row["finished"][:10], machine, f"{duration(row['seconds'])} on {row['device']}"]
        facts[1:1] = [f"commit `{row['commit'][:7]}`"] if row.get("commit") else []
        state = "" if row["current"] else " The page's code has changed since."
        apart, everything, here = [], [], {claim.id: (claim, record) for claim, record in self.rows_of(self.page)}
        for name, record in row["results"].items():
            if name not in here:  # the claim has been renamed or given up since
                continue
            claim, shown = here[name]
            verdict = claims.judge(claim, record["measured"], record.get("interval"))
            only_here = claim.verdict == "recorded" or shown is None
            on_page = "–" if only_here else several(claim, shown["measured"], record["measured"])
            cells = [claim.claim, on_page, several(claim, record["measured"]), badge(verdict, verdict)]
            everything.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            if only_here or verdict != shown["verdict"]:
                apart.append(everything[-1])
        head = ["| claim | on this page | recorded | verdict there |", "|---|---|---|---|"]
        total = plural(len(everything), "row")
        same = f"{len(everything) - len(apart)} of {total} have the verdict that they have on this page."
        if apart:
            same += " The others, and what only a run of this size can tell:\n\n" + div("scoreboard", head + apart)
        all_of_it = dropdown(f"All {total} of this run", div("scoreboard", head + everything))
        return f"Run `{row['run']}` ({' · '.join(facts)}): {sizes}.{state} {same}\n\n{all_of_it}"
