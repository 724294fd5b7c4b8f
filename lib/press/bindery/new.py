"""`python -m lib new PAPER/PAGE`: a new page that already runs, with all that belongs to it, to be rewritten line by line.

Made are the page, its first claim, its preset, its line in the table of contents and a first test; for a new paper also the
folder, the verdict page and an entry in the bibliography. Nothing that is there is overwritten.
"""

import re
from pathlib import Path

from lib.press import environment, files
from lib.press.errors import PageError

NAME = re.compile(r"[a-z][a-z0-9_]*")
BEHIND = ("  - caption: The whole book\n", "  - caption: Library\n")  # a new paper's part comes before the first of these

PAGE = """---
jupytext:
  formats: md:myst,ipynb
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# Does @TITLE@ hold?

```{glance}
:paper: @PAPER_TITLE@, Section 1 {cite}`@CITE@`
:remakes: Figure 1
```

Two or three sentences that a newcomer follows: what is asked, and why it matters. Until you write them, this page asks whether
the sigmoid of `linear.mode_strength` is what small steps of its equation give.

```{answer} fig-@SHORT@-first
The short answer, in two to four sentences. The largest distance between curve and steps is {glue:text}`@SHORT@-first`, the
mean over {glue:text}`@SHORT@-networks` starting points.
```

```{claims}
:folded:
```

```{code-cell} ipython3
:tags: [parameters, hide-input]
networks: int = 20     # starting points, one for each network [2, 10000]
step: float = 0.01     # size of a step [1e-4, 0.1]
steps: int = 800       # how many of them [200, 100000]
seed: int = 0          # moves all randomness of the page [0, 1000000]
```

```{parameters}
:folded:
```

```{code-cell} ipython3
:tags: [hide-input]
import torch

from lib import linear
from lib.press import claims, plots

check = claims.on_page("@PAPER@/@PAGE@")
check.say("@SHORT@-networks", networks)
```

## The idea

One mode of a linear network has one number, its strength $a$, which obeys

$$
\\dot a = 2a(1 - a) .
$$ (eq-@SHORT@-flow)

```{code-cell} ipython3
random = torch.Generator().manual_seed(seed)
start = 0.01 * (0.5 + torch.rand(networks, generator=random, dtype=torch.float64))  # (networks,)
strength = [start]
for _ in range(steps):
    strength.append(strength[-1] + step * 2 * strength[-1] * (1 - strength[-1]))
strength = torch.stack(strength)                                                     # (steps + 1, networks)
time = step * torch.arange(steps + 1, dtype=torch.float64)
theory = linear.mode_strength(time[:, None], 1.0, 1.0, start)
```

```{code-cell} ipython3
---
mystnb:
  figure:
    name: fig-@SHORT@-first
    caption: "**@PAPER_TITLE@, Fig. 1.** Say what is seen, and what it means. Steps in colour, the closed form dashed."
  image:
    alt: Curves that rise from nearly zero to one, each beside a dashed line that it follows.
tags: [hide-input]
---
fig, ax = plots.panels(1, height=2.6)
ax.plot(time, strength[:, :5], color=plots.COLOURS["linear"])
ax.plot(time, theory[:, :5], "k--", lw=1)
ax.set(xlabel="time", ylabel="strength $a$");
```

```{code-cell} ipython3
:tags: [nbval-check-output]
check("@SHORT@-first", over=(strength - theory).abs().amax(0))
```

## Where we and the paper part ways

What differs, and why.

## Try it

```
python -m lib run @PAPER@/@PAGE@ -p step=0.1
```
"""

CLAIM = """- id: @SHORT@-first
  page: @PAGE@
  author: paper
  rank: @RANK@
@MAIN@  where: Section 1
  figure: "1"
  claim: 'The strength of a mode follows the sigmoid $a(t)$; largest distance along the way, mean over starting points.'
  expect: "< 0.02"
  reason: a step of 0.01 is late by half a step for each unit of time in which the strength grows, which is below 2 % of its end
  verdict: reproduced
"""
MAIN = """  result: A mode grows along a sigmoid that has no free parameter.
  hero: fig-@SHORT@-first
"""

VERDICT_PAGE = """# @PAPER_TITLE@

*The authors (year)* · {cite}`@CITE@`

**The question.** Two or three sentences.

## What was claimed, and does it hold?

```{results}
```

**In one paragraph.** What stands, what falls, and what that means.

## Where is Figure 1?

```{figure-index}
```

## Slips that matter

```{slips}
```

## How we went about it

**Easy.** What was. **Hard.** What was. **Left open by the text, and what we chose.** What was.

```{cost}
```

## Cite, object

```{cite-paper}
```
"""

BIBLIOGRAPHY = """@unpublished{@CITE@,
  author = {Author, First},
  title = {@PAPER_TITLE@},
  note = {To be completed},
  year = {2026}
}
"""

PRESET = """@PAPER@/@PAGE@:
  smoke: {networks: 3, steps: 600}
  paper: {}
  cost: 2 seconds, with the page's own parameters
"""

TEST = '''"""@PAPER@/@PAGE@: its claims can fail, and what the page computes is what they are about."""

import torch

from lib import linear
from lib.press import claims


def test_the_first_claim_can_fail():
    claim = claims.of_page("@PAPER@/@PAGE@")["@SHORT@-first"]
    assert claims.judge(claim, 0.005) == "reproduced"
    assert claims.judge(claim, 0.021) == "not reproduced"


def test_the_closed_form_solves_its_equation():
    t = torch.linspace(0, 8, 100, dtype=torch.float64, requires_grad=True)
    a = linear.mode_strength(t, 1.0, 1.0, 0.01)
    (slope,) = torch.autograd.grad(a.sum(), t)
    torch.testing.assert_close(slope, 2 * a * (1 - a))
'''

LEFT = """What is left is what only a person can do:
  - read the paper, and put its statements into book/{paper}/claims.yml before you measure them
  - write the page: question, answer, story, where we and the paper part ways
  - put the models into a room of lib, theory beside simulation, and their tests into tests/{paper}/
  - say in book/presets.yml what the paper's sizes are, what it states (`stated`), and what they cost
{more}`python -m lib preview {paper}/{page}` shows the page and renders it on every save, `make check` tests it."""
MORE = "  - complete the entry in book/references.bib, and the verdict page book/{paper}/index.md\n"


def main(name: str, title: str | None = None, root: Path = environment.ROOT) -> int:
    """Make the page and say what was made and what is left to do."""
    paper, page, fresh = names(name, root)
    for path in make(paper, page, title or words(paper), fresh, root):
        print(f"  {path}")
    print(LEFT.format(paper=paper, page=page, more=MORE.format(paper=paper) if fresh else ""))
    return 0


def names(name: str, root: Path) -> tuple[str, str, bool]:
    """(paper, page, whether the paper is new); a PageError if that cannot be a page or is there already."""
    paper, slash, page = name.partition("/")
    if not slash or not NAME.fullmatch(paper) or not NAME.fullmatch(page):
        raise PageError(f"write PAPER/PAGE with small letters, digits and '_', such as 'my_paper/first_figure', not '{name}'")
    if (root / "book" / paper / f"{page}.md").exists() or page == "index":
        raise PageError(f"there is a page '{name}' already")
    folder = root / "book" / paper
    fresh = not (folder / "claims.yml").exists()
    if fresh and folder.exists() and any(folder.iterdir()):
        raise PageError(f"book/{paper} is there, but has no claims.yml: choose another name for the paper")
    return paper, page, fresh


def words(name: str) -> str:
    """A name as words: 'my_paper' is 'My paper'."""
    return name.replace("_", " ").capitalize()


def make(paper: str, page: str, title: str, fresh: bool, root: Path) -> list[str]:
    """Write everything; the names of the files that were made or extended."""
    book = root / "book"
    cite = paper.replace("_", "") if fresh else files.read_yaml(book / paper / "claims.yml", PageError).get("cite") or paper
    shown = title if fresh else files.read_yaml(book / paper / "claims.yml", PageError)["title"]
    filled = {"PAPER": paper, "PAGE": page, "PAPER_TITLE": shown, "TITLE": words(page).lower(), "CITE": cite}
    filled |= {"SHORT": page.replace("_", "-"), "RANK": "main" if fresh else "supporting", "MAIN": MAIN if fresh else ""}
    done = []

    def write(path: str, text: str, after: str = "") -> None:
        for _ in range(2):  # MAIN has places to fill, too
            text = re.sub(r"@([A-Z_]+)@", lambda match: filled[match[1]], text)
        files.write_whole(root / path, after + text, PageError)
        done.append(path)

    def extend(path: str, text: str) -> None:
        before = files.read_text(root / path, PageError) if (root / path).exists() else ""
        write(path, text, before if before.endswith("\n") or not before else before + "\n")

    claims_file = f"book/{paper}/claims.yml"
    known = files.read_text(root / claims_file, PageError) if not fresh else ""
    if f"id: {filled['SHORT']}-first\n" in known:
        raise PageError(f"book/{paper}/claims.yml has a claim '{filled['SHORT']}-first' already")
    write("_toc.yml", contents(files.read_text(root / "_toc.yml", PageError), paper, page, shown, fresh))
    if fresh:
        write(claims_file, f"title: {shown}\ncite: {cite}\nclaims:\n" + CLAIM)
        write(f"book/{paper}/index.md", VERDICT_PAGE)
        extend("book/references.bib", BIBLIOGRAPHY)
    elif re.search(r"^errata:|^index:", known.partition("\nclaims:")[2], re.M):  # claims are not the last list of the file
        write(claims_file, known.replace("\nclaims:\n", "\nclaims:\n" + CLAIM, 1))
    else:
        extend(claims_file, CLAIM)
    write(f"book/{paper}/{page}.md", PAGE)
    extend("book/presets.yml", PRESET)
    write(f"tests/{paper}/test_{page}.py", TEST)
    return done


def contents(text: str, paper: str, page: str, title: str, fresh: bool) -> str:
    """The table of contents with the page: after its paper's last one, or as a new part before the library."""
    line = f"      - file: book/{paper}/{page}\n"
    if fresh:
        part = f"  - caption: {title}\n    chapters:\n      - file: book/{paper}/index\n{line}"
        behind = next((caption for caption in BEHIND if caption in text), None)
        return text.replace(behind, part + behind, 1) if behind else text + part
    last = text.rfind(f"      - file: book/{paper}/")
    end = text.index("\n", last) + 1 if last >= 0 else len(text)
    return text[:end] + line + text[end:]
