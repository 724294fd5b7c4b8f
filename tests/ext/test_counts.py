"""One way of counting: header, claims box, scoreboard, filter, totals and errata say the same numbers."""

import re
from collections import Counter

import downloads
import page_boxes
import paper_pages
import pytest
import scoreboard
from base import MAIN, badge, counted
from bs4 import BeautifulSoup

from lib import claims
from lib.book import pages, verdicts

BOOK = pages.ROOT / "book"
PAGES, PARTS = pages.all_pages(), verdicts.parts(BOOK)


def numbers(words: str) -> Counter:
    """'14 claims, 1 slip, 2 checks of our own code' as numbers by word."""
    return Counter({word: int(number) for number, word in re.findall(r"(\d+) (claim|slip|check)s?", words)})


@pytest.fixture(scope="module")
def shown(directive):
    """What the generated parts of the scoreboard's page show."""

    def soup(kind):
        return BeautifulSoup(directive(kind, "book/scoreboard").run()[0].astext(), "html.parser")

    return {"board": soup(scoreboard.Scoreboard), "totals": soup(scoreboard.Totals)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_header_and_box_of_a_page_agree(directive, page):
    header = directive(page_boxes.Glance, f"book/{page.name}", paper="A paper").text()
    box = directive(page_boxes.ClaimList, f"book/{page.name}", folded=None).text()
    said = numbers(re.search(r"\*\*Checks\*\* ([^·]*)", header)[1])
    title = numbers(re.search(r"What this page checks \(([^)]*)\)", box)[1]) if "dropdown" in box else Counter(claim=0)
    assert said["claim"] == title["claim"] and said["slip"] == title["slip"]
    lines = re.findall(r"^1\. .*$", box, re.M)
    halves = sum("*As printed:*" in line or "*Corrected:*" in line for line in lines)
    assert len(lines) == title["claim"] + title["check"] + halves


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_scoreboard_has_the_sum_of_its_pages(shown, part):
    block = shown["board"].find("details", attrs={"data-paper": part})
    of_pages = [[row for row in verdicts.rows(BOOK, [part]) if row[0].page == page.name] for page in PAGES]
    said = numbers(block.summary.small.text)
    assert said["claim"] == sum(numbers(counted(rows))["claim"] for rows in of_pages)
    cards = block.find_all("li")
    assert said["claim"] == sum(card["data-kind"] in ("statement", "finding") for card in cards)
    assert said["slip"] == len({card["data-slip"] for card in cards if card["data-kind"] == "slip"})
    assert said["check"] == sum(card["data-kind"] == "check" for card in cards)


def test_every_choice_of_the_filter_shows_as_many_as_it_says(shown):
    cards = shown["board"].find_all("li")
    for field in ("verdict", "kind", "rank"):
        for option in shown["board"].find("select", attrs={"name": field}).find_all("option")[1:]:
            these = [card for card in cards if card[f"data-{field}"] == option["value"]]
            number = len({card.get("data-slip", card["id"]) for card in these})  # both halves of a slip are one
            assert option.text.endswith(f"({number})"), option.text


def test_totals_are_those_of_the_filter(shown):
    lines = {
        line.th.text.partition(" ")[2]: (int(line.th.text.split()[0]), line.td.text) for line in shown["totals"].find_all("tr")
    }
    options = {option["value"]: option.text for option in shown["board"].find_all("option") if option["value"]}
    for title, kind in (
        ("statements of the papers", "statement"),
        ("findings of this book", "finding"),
        ("slips in print", "slip"),
    ):
        assert options[kind].endswith(f"({lines[title][0]})")
    assert options["main"].endswith(f"({lines['main results of the papers'][0] + lines['main results of this book'][0]})")
    for title, (number, verdicts_of_it) in lines.items():
        if title != "slips in print":
            assert number == sum(map(int, re.findall(r"\d+", verdicts_of_it))), title
    headline = list(map(int, re.findall(r"\d+", shown["totals"].find(class_="headline").text)))
    assert headline[1::2] == [lines["main results of the papers"][0], lines["main results of this book"][0]]
    assert f"{headline[0]} of the papers' {headline[1]} main results hold" in verdicts.score(BOOK)


def test_errata_have_every_slip_once(directive, shown):
    text = directive(scoreboard.Errata, "book/errata").text()
    heads = list(map(int, re.findall(r"^## .*\((\d+)\)$", text, re.M)))
    assert sum(heads) == text.count("{div} slip") == sum(verdicts.count(verdicts.rows(BOOK))["slips"].values())
    for part in PARTS:
        mine = directive(paper_pages.Slips, f"book/{part}/index").text()
        known = [slip.severity for slip in claims.errata(part, BOOK).values()]
        typos = re.search(r"(\d+) typos? of this paper", mine)
        assert (int(typos[1]) if typos else 0) == known.count("typo")
        block = shown["board"].find("details", attrs={"data-paper": part})
        number = numbers(block.summary.small.text).get("slip", 0)
        assert mine.count("{div} slip") == number == len(known) - known.count("typo")


def test_each_typo_is_a_row_of_a_table(directive):
    head = "| where | printed | meant |"
    shown = directive(scoreboard.Errata, "book/errata").typos().splitlines()
    lines = [line for line in shown if line.startswith("| ") and line != head]
    known = [slip for part in PARTS for slip in claims.errata(part, BOOK).values() if slip.severity == "typo"]
    assert len(lines) == len(known) and all(slip.where in line for line, slip in zip(lines, known, strict=True))
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)


def test_main_results_are_shown_as_often_as_they_are_counted(directive):
    total = verdicts.count(verdicts.rows(BOOK))
    lines = re.findall(r"^- .*", directive(paper_pages.Papers, "book/intro").text(), re.MULTILINE)
    ours = sum("*This book:*" in line for line in lines)
    assert ours == total["our main results"].total()
    assert len(lines) == ours + total["papers' main results"].total()


@pytest.mark.parametrize(
    ("number", "figure"), [("7c", "two"), ("8", "two"), ("4h", "one"), ("G.1B", "three"), ("19", "four"), ("1", None)]
)
def test_figures_of_the_paper_are_found_by_our_captions(number, figure):
    openings = {
        "one": "Race, Fig. 4g and h.", "two": "Race, Figs 7b, 7c and 8.", "three": "Random weights, Fig. G.1B.",
        "four": "Redshift, Fig. 19 (others).", "five": "Random weights, Lemma 9.",
    }  # fmt: skip
    captions = {name: {"caption": f"**{opening}** Left, 1 and 9 **more**."} for name, opening in openings.items()}
    assert paper_pages.shows(captions, number) == figure


def rows_shown_on(page) -> dict[str, str]:
    """What the rows of an executed page say in their verdict column, by claim."""
    outputs = (output for cell in pages.stored(page)["cells"] for output in cell.get("outputs", []))
    tables = ("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    soups = (BeautifulSoup(table, "html.parser") for table in tables if 'class="check' in table)
    return {soup.table["id"]: soup.find("td", class_="verdict").text for soup in soups}


@pytest.mark.parametrize("part", PARTS)
def test_one_statement_has_one_verdict_everywhere(directive, shown, part):
    on_pages = {name: said for page in PAGES if page.name.startswith(f"{part}/") for name, said in rows_shown_on(page).items()}
    taken_away = {row["id"]: row["verdict"] for row in downloads.table(pages.ROOT)}
    front = directive(paper_pages.Papers, "book/intro").text()
    opening = directive(paper_pages.Results, f"book/{part}/index").text()
    board = shown["board"].find("details", attrs={"data-paper": part})
    for claim, record in verdicts.rows(BOOK, [part]):
        verdict = verdicts.verdict(claim, record)
        word = claims.word(claim, verdict)
        assert on_pages[claim.id].split(" (")[0] == word, f"{claim.id} on its page"
        assert taken_away[claim.id] == verdict
        assert word in board.find(id=f"row-{claim.id}").find(class_="verdict").text, f"{claim.id} on the scoreboard"
        if claim.rank == "main":
            said = badge(verdict, MAIN.get(verdict, verdict))
            assert any(said in line and claim.result in line for line in front.splitlines()), f"{claim.id} on the front page"
            assert f"{said} **{claim.result}**" in opening, f"{claim.id} on its paper's page"
