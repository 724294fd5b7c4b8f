"""Claims: the file format, the verdicts, and the book's own claims against its executed pages."""

import json
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.press import claims, pages
from lib.press.claims import Claim, ClaimError, arithmetic, judge, relation
from lib.press.rendering import boxes
from lib.press.verdicts import rows

PAPERS = claims.papers()


def claim(**changes) -> Claim:
    base = dict(
        id="a",
        folder="p",
        page="p/x",
        where="Eq. 1",
        claim="It is so.",
        expect="= 2",
        tolerance="0.1",
        reason="r",
        verdict="reproduced",
    )
    return Claim(**(base | changes))


@pytest.mark.parametrize(
    ("expect", "tolerance", "good", "bad"),
    [
        ("= 2", "0.1", [1.95, 2, 2.1], [1.85, 2.2]),
        ("= sqrt(2/3)", "1 %", [0.8165, 0.82], [0.80, 0.83]),
        ("= -2", "10 %", [-2.1, -1.9], [-1.7, 2]),
        ("< 0.03", "", [0.02, -1], [0.03, 1]),
        ("> 1e3", "", [1001], [1000, -5]),
        ("in [1, 2*pi]", "", [1, 6.28], [0.9, 6.3]),
        ("true", "", [True], [False]),
    ],
)
def test_relations(expect, tolerance, good, bad):
    tested = claim(expect=expect, tolerance=tolerance)
    assert all(tested.holds(value) for value in good)
    assert not any(tested.holds(value) for value in bad)


def test_several_parts_make_a_partial_verdict():
    tested = claim()
    assert judge(tested, 2.0) == "reproduced"
    assert judge(tested, {"a": 2.0, "b": 2.05}) == "reproduced"
    assert judge(tested, {"a": 2.0, "b": 3.0}) == "reproduced in part"
    assert judge(tested, [3.0, 4.0]) == "not reproduced"


def test_what_cannot_be_judged_is_an_error():
    for value in (math.nan, "2", [], {"a": math.nan}, None, True):
        with pytest.raises(ClaimError):
            judge(claim(), value)
    with pytest.raises(ClaimError):
        judge(claim(expect="true"), 1.0)


def test_tensors_become_numbers():
    assert claims.plain({"a": torch.tensor(2.0), "b": torch.tensor([1, 2])}) == {"a": 2.0, "b": [1, 2]}
    assert claims.plain(torch.tensor(True)) is True


@given(st.floats(min_value=-1e6, max_value=1e6))
def test_arithmetic_reads_numbers_back(value):
    assert arithmetic(repr(value)) == value


@pytest.mark.parametrize("text", ["__import__('os')", "x", "2 +", "[1]", "open('a')", "'a'", "sqrt(4, 5)"])
def test_arithmetic_evaluates_nothing_else(text):
    with pytest.raises(ClaimError):
        arithmetic(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reason: exact", "reason: ''", "reason for its tolerance"),
        ("tolerance: 0.01", "tolerance: ''", "needs a tolerance"),
        ("verdict: reproduced", "verdict: maybe", "none of"),
        ("verdict: reproduced", "verdict: not reproduced", "needs a note"),
        ('expect: "= 6"', "expect: about six", "expect must be"),
        ("author: paper", "author: book\n  erratum: slip", "'erratum' goes with"),
        ("author: paper", "author: correction", "'erratum' goes with"),
        ("author: paper", "author: paper\n  rank: main", "a main result has"),
        ("author: paper", "author: paper\n  result: It is six.", "a main result has"),
        ("where: Eq. 1", "where: Eq. 1\n  colour: red", "unknown field colour"),
        ("id: two-width", "id: one-width", "twice"),
        ("verdict: reproduced", "verdict: recorded", "'finding'"),
    ],
)
def test_ill_formed_claims_are_named(repository, old, new, message):
    repository.edit("book/paper/claims.yml", old, new)
    with pytest.raises(ClaimError, match=message):
        claims.load("paper", repository.root / "book")


def test_check_refuses_unknown_claims_and_wrong_pages(repository):
    check = claims.on_page("paper/one", book=repository.root / "book")
    with pytest.raises(ClaimError, match="did you mean 'one-width'"):
        check("one-widht", 6.0)
    with pytest.raises(ClaimError, match="belongs to the page paper/two"):
        check("two-width", 6.0)
    with pytest.raises(ClaimError, match="NaN"):
        check("one-width", math.nan)


def test_verdicts_bind_in_both_directions_but_only_with_the_books_parameters(repository, monkeypatch):
    monkeypatch.delenv("RACING_DRAFT", raising=False)
    book = repository.root / "book"
    check = claims.Check("paper/one", {"width": 3, "name": "x"}, book)
    check("one-width", 6.0)
    with pytest.raises(claims.VerdictChanged, match="not reproduced"):
        check("one-width", 7.0)
    claims.Check("paper/one", {"width": 4, "name": "x"}, book)("one-width", 8.0)
    repository.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: not reproduced\n  note: because")
    with pytest.raises(claims.VerdictChanged):
        claims.Check("paper/one", {"width": 3, "name": "x"}, book)("one-width", 6.0)


def test_recorded_claims_need_a_recorded_run(repository, capsys):
    repository.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: recorded\n  finding: reproduced")
    book = repository.root / "book"
    check = claims.Check("paper/one", {"width": 3, "name": "x"}, book)
    with pytest.raises(ClaimError, match="check.recorded"):
        check("one-width", 6.0)
    with pytest.raises(ClaimError, match="no recorded run"):
        check.recorded("one-width")
    (book / "paper/recorded").mkdir()
    row = {"finished": "2026-01-01T00:00:00", "seconds": 600.0, "device": "cpu", "run": "abc", "page": "paper/one"}
    row |= {"parameters": {"width": 3}, "status": "finished", "fingerprint": "f"}
    for measured, good in ((6.0, True), (7.0, False)):
        results = {"one-width": {"id": "one-width", "measured": measured, "verdict": "reproduced"}}
        repository.write("book/paper/recorded/one-abc.json", json.dumps(row | {"results": results}))
        if good:
            check.recorded("one-width")
        else:
            with pytest.raises(claims.VerdictChanged, match="recorded run gives 'not reproduced'"):
                check.recorded("one-width")
        capsys.readouterr()
        wider = claims.Check("paper/one", {"width": 4, "name": "x"}, book)
        wider.recorded("one-width", 8.0)  # a run at another size measures it, whatever the recorded run said
        assert "one-width" in capsys.readouterr().out
        wider.recorded("one-width")
        assert capsys.readouterr().out == ""  # and shows nothing when its size does not suffice
    with pytest.raises(claims.VerdictChanged):
        check.recorded("one-width", 6.0)  # the book's own parameters show the recorded run, never their own number


def test_row_is_escaped(monkeypatch):
    tested = claim(claim="a < b & <script>")
    shown = []
    monkeypatch.setattr(claims, "publish", lambda data, metadata: shown.append(data))
    rows.show(tested, {"<x>": 2.0}, "reproduced")
    assert "<script>" not in shown[0]["text/html"] and "<x>" not in shown[0]["text/html"]
    assert shown[0]["text/plain"].startswith("[reproduced] a: ours")


# --- the book's own claims -------------------------------------------------------------------------------------------


def test_ids_are_unique_in_the_book():
    ids = [name for paper in PAPERS for name in claims.load(paper)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_is_checked_by_its_page_with_the_declared_verdict(paper):
    for name, entry in claims.load(paper).items():
        measured = claims.measured_in(entry.page)
        if entry.verdict == "recorded":
            there = claims.recorded_in(entry.page)
            assert name in there and judge(entry, there[name]["measured"]) == entry.finding
            assert measured[name]["verdict"] == "recorded"
            continue
        assert name in measured, f"{entry.page} does not check {name}"
        assert measured[name]["verdict"] == entry.verdict
        assert entry.verdict == "undetermined" or judge(entry, measured[name]["measured"]) == entry.verdict, (
            f"{name}: the stored number does not give the stored verdict"
        )


@pytest.mark.parametrize("paper", PAPERS)
def test_errata_come_in_pairs_that_differ_in_verdict(paper):
    groups: dict[str, dict[str, list[str]]] = {}
    for entry in claims.load(paper).values():
        if entry.erratum:
            groups.setdefault(entry.erratum, {}).setdefault(entry.kind, []).append(entry.verdict)
    for name, halves in groups.items():
        assert set(halves) == {"printed", "corrected"}, f"{name} lacks a half"
        assert all(verdict != "reproduced" for verdict in halves["printed"]), f"{name}: the printed form holds"
        assert all(verdict == "reproduced" for verdict in halves["corrected"]), f"{name}: the corrected form fails"


@pytest.mark.parametrize("paper", PAPERS)
def test_the_largest_run_decides_and_its_finding_is_declared(paper):
    for name, entry in claims.load(paper).items():
        there = claims.recorded_in(entry.page).get(name)
        if there is None:
            assert not entry.finding, f"{name} declares a finding, but no recorded run measured it"
        elif entry.finding or entry.verdict != "undetermined":
            assert judge(entry, there["measured"]) == (entry.finding or entry.verdict), f"{name}: declare what the run found"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_slip_has_both_forms_and_a_severity(paper):
    assert set(claims.errata(paper)) == {entry.erratum for entry in claims.load(paper).values() if entry.erratum}


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in ("deep_linear", "synthesis")])
def test_every_paper_has_three_to_six_main_results_and_their_figures_are_drawn(paper):
    main = [entry for entry in claims.load(paper).values() if entry.rank == "main"]
    assert 3 <= len(main) <= 6
    for entry in main:
        assert boxes.figure_alt(pages.find(entry.page), entry.hero), f"{entry.id}: {entry.hero} is not drawn on {entry.page}"
        assert len(entry.result) <= 160 and entry.author != "correction"


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_pages_name_themselves_and_type_no_result_by_hand(page):
    text = page.markdown.read_text(encoding="utf-8")
    assert f'claims.on_page("{page.name}"' in text
    assert "{glance}" in text and "{claims}" in text
    for name in re.findall(r"\{glue:text\}`([^`]+)`", text):
        glued = {
            output["metadata"]["scrapbook"]["name"]
            for cell in pages.stored(page)["cells"]
            for output in cell.get("outputs", [])
            if "scrapbook" in output.get("metadata", {})
        }
        assert name.split(":")[0] in glued, f"{page.name} cites {name}, which it does not measure"


def test_every_relation_of_the_book_can_be_read():
    for paper in PAPERS:
        for entry in claims.load(paper).values():
            word, low, high = relation(entry)
            assert word == "true" or low <= high
