"""Claims: the file format, relations, intervals, verdicts that bind, and the book's own claims against its executed pages."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from lib import claims
from lib.book import pages
from lib.claims import Claim, ClaimError, arithmetic, judge, over_seeds
from lib.files import Problem

PAPERS = claims.papers()


def claim(**changes) -> Claim:
    base = {"id": "a", "page": "p/x", "where": "Eq. 1", "claim": "It is so.", "expect": "= 2", "tolerance": "0.1"}
    return Claim(**(base | {"reason": "r", "verdict": "reproduced", "author": "paper"} | changes))


@pytest.fixture
def shown(monkeypatch):
    """What is published instead of being shown: (data, metadata)."""
    found = []
    monkeypatch.setattr(claims, "publish", lambda data, metadata: found.append((data, metadata)))
    return found


def check_of(repository, **parameters) -> claims.Check:
    return claims.Check("paper/one", {"width": 3, "name": "x"} | parameters, repository.book)


# --- relations -------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("text", ["__import__('os')", "x", "2 +", "sqrt(4, 5)", "1/0", "9**9**9**9"])
def test_arithmetic_evaluates_nothing_else(text):
    with pytest.raises(ClaimError, match="not a number or a simple formula"):
        arithmetic(text)


def test_several_parts_make_a_partial_verdict():
    assert judge(claim(), 2.0) == judge(claim(), {"a": 2.0, "b": 2.05}) == "reproduced"
    assert judge(claim(), {"a": 2.0, "b": 3.0}) == "reproduced in part"
    assert judge(claim(), [3.0, 4.0]) == "not reproduced"


@pytest.mark.parametrize(
    ("expect", "value"), [("= 2", math.nan), ("= 2", "2"), ("= 2", {}), ("= 2", {"a": math.nan}), ("= 2", True), ("true", 1.0)]
)
def test_what_cannot_be_judged_is_an_error(expect, value):
    with pytest.raises(ClaimError):
        judge(claim(expect=expect), value)


# --- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 30])
def test_an_interval_is_students(n):
    values = np.random.default_rng(n).normal(3, 2, n).tolist()
    found = over_seeds(values)
    low, high = stats.t.interval(0.95, n - 1, np.mean(values), stats.sem(values))
    assert np.allclose([found.mean, found.low, found.high], [np.mean(values), low, high], rtol=1e-9)
    assert found.seeds == n and found.spread == pytest.approx(np.std(values, ddof=1))


def test_an_interval_ends_where_a_number_can_no_longer_be():
    few = [0.0, 0.0, 0.9]
    free, share, size = over_seeds(few), over_seeds(few, "share"), over_seeds(few, "size")
    assert free.low < 0 and free.high > 1
    assert (share.low, share.high) == (0.0, 1.0) and (size.low, size.high) == (0.0, free.high)


@pytest.mark.parametrize(("yes", "n"), [(0, 5), (3, 7), (12, 12), (11, 12)])
def test_a_share_of_yes_and_no_has_wilsons_interval(yes, n):
    found = over_seeds([1.0] * yes + [0.0] * (n - yes), "share")
    assert np.allclose([found.low, found.high], stats.binomtest(yes, n).proportion_ci(method="wilson"), atol=1e-12)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf]])
def test_an_interval_needs_two_finite_numbers(values):
    with pytest.raises(ClaimError, match="an interval over seeds needs"):
        over_seeds(values)


# --- check on a page -------------------------------------------------------------------------------------------------


def test_verdicts_bind_in_both_directions_but_only_with_the_books_parameters(repository, monkeypatch, shown):
    check_of(repository)("one-width", 6.0)
    with pytest.raises(claims.VerdictChanged, match="measured 'not reproduced'.*declares 'reproduced'"):
        check_of(repository)("one-width", 7.0)
    check_of(repository, width=4)("one-width", 8.0)
    repository.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: not reproduced\n  note: because")
    with pytest.raises(claims.VerdictChanged, match="declares 'not reproduced'"):
        check_of(repository)("one-width", 6.0)
    monkeypatch.setenv("RACING_DRAFT", "1")
    check_of(repository)("one-width", 6.0)
    monkeypatch.delenv("RACING_DRAFT")
    repository.edit("book/paper/claims.yml", "verdict: not reproduced", "verdict: undetermined")
    check_of(repository)("one-width", over=[5.0, 7.0])  # the interval crosses the bound
    with pytest.raises(claims.VerdictChanged, match="measured 'reproduced'"):
        check_of(repository)("one-width", over=[6.0, 6.0001])


def test_an_unknown_claim_and_that_of_another_page_are_refused(repository):
    with pytest.raises(ClaimError, match="there is no claim 'one-widht'; did you mean 'one-width'"):
        check_of(repository)("one-widht", 6.0)
    with pytest.raises(ClaimError, match="belongs to the page paper/two"):
        check_of(repository)("two-width", 6.0)


def test_over_seeds_the_mean_is_measured_and_the_interval_kept(repository, shown):
    check = check_of(repository)
    check("one-width", over=torch.tensor([5.996, 6.0, 6.004], dtype=torch.float64))
    data, record = shown[0][0], shown[0][1]["racing"]
    assert record["measured"] == pytest.approx(6.0) and record["interval"]["seeds"] == 3
    assert record["interval"]["high"] - 6 == pytest.approx(4.302652729911275 * 0.004 / math.sqrt(3))
    assert "n = 3" in data["text/html"] and "[5.99, 6.01]" in data["text/html"]
    check("one-parts", over={"b": [2.5, 2.5001], "a": [1.5, 1.5001]})
    assert shown[2][1]["racing"]["measured"] == pytest.approx({"b": 2.5, "a": 1.5}, abs=1e-3)


@pytest.mark.parametrize(
    ("expect", "low", "high", "verdict"),
    [
        ("in [1.9, 2.1]", 1.95, 2.05, "reproduced"),
        ("in [1.9, 2.1]", 3.0, 4.0, "not reproduced"),
        ("in [1.9, 2.1]", 1.95, 2.5, "undetermined"),  # the mean fails, the interval crosses
        ("in [1.9, 2.1]", 1.85, 2.1, "undetermined"),  # the mean holds, the interval crosses
        ("in [1.9, 2.1]", 1.0, 3.0, "undetermined"),  # it holds in the middle alone
        ("in [1.9, 2.1]", 1.0, 2.6, "undetermined"),  # the mean fails, and yet the range is inside the interval
        ("< 2", 1.0, 1.9, "reproduced"),
        ("< 2", 1.0, 2.0, "undetermined"),
        ("< 2", 2.0, 2.0, "not reproduced"),  # no seed differs, and it is not smaller
    ],
)
def test_an_interval_that_crosses_the_bound_leaves_it_undetermined(expect, low, high, verdict):
    mean = (low + high) / 2
    interval = {"mean": mean, "low": low, "high": high, "spread": 1.0, "seeds": 5}
    assert judge(claim(expect=expect), mean, interval) == verdict
    worst = judge(claim(expect=expect), mean + 1e-6, interval)  # a worst case, say: no mean, judged by itself
    assert worst == judge(claim(expect=expect), mean + 1e-6)


def test_undetermined_parts_leave_the_whole_open_unless_others_differ():
    def over(**means):
        ranges = {name: {"mean": m, "low": m - r, "high": m + r, "spread": 1.0, "seeds": 5} for name, (m, r) in means.items()}
        return judge(claim(), {name: m for name, (m, _) in means.items()}, ranges)

    holds, fails, open_ = (2.0, 0.01), (5.0, 0.01), (2.1, 0.01)
    assert over(a=holds, b=open_) == over(a=fails, b=open_) == over(a=open_) == "undetermined"
    assert over(a=holds, b=fails, c=open_) == "reproduced in part"


def test_numbers_that_are_not_finite_stop_the_book_and_no_other_run(repository, shown):
    for numbers in ({"measured": math.nan}, {"measured": math.inf}, {"over": [1.0, math.nan]}):
        with pytest.raises(claims.NotMeasured, match="one-width: .* finite number"):
            check_of(repository)("one-width", **numbers)
        assert shown == []
        check_of(repository, width=4)("one-width", **numbers)
        assert shown.pop()[0]["text/plain"].startswith("[not measured] one-width")


def recorded_row(**changes) -> dict:
    row = {"page": "paper/one", "run": "abc", "parameters": {"width": 3}, "status": "finished", "fingerprint": "f"}
    row |= {"machine": "m", "finished": "2026-01-01T00:00:00", "seconds": 600.0, "device": "cpu"}
    return row | {"results": {"one-width": {"id": "one-width", "measured": 6.0, "verdict": "reproduced"}}} | changes


def test_a_recorded_claim_shows_its_recorded_run(repository, shown):
    repository.edit("book/paper/claims.yml", "verdict: reproduced", "verdict: recorded\n  finding: reproduced")
    check = check_of(repository)
    with pytest.raises(ClaimError, match=r"show it with check\.recorded"):
        check("one-width", 6.0)
    with pytest.raises(ClaimError, match="no recorded run of paper/one measured 'one-width'"):
        check.recorded("one-width")
    repository.write("book/paper/recorded/one-abc.json", json.dumps(recorded_row()))
    check.recorded("one-width", 7.0)  # the book's own parameters show the recorded run, never their own number
    assert shown[0][1]["racing"] == {"id": "one-width", "measured": 6.0, "verdict": "recorded"}
    assert "recorded 2026-01-01, 10 min on cpu" in shown[0][0]["text/html"]
    other = {"one-width": {"measured": 7.0, "verdict": "not reproduced"}}
    repository.write("book/paper/recorded/one-abc.json", json.dumps(recorded_row(results=other)))
    with pytest.raises(claims.VerdictChanged, match="the recorded run gives 'not reproduced'"):
        check.recorded("one-width")
    wider, before = check_of(repository, width=4), len(shown)
    wider.recorded("one-width")  # its size did not suffice: nothing is shown, lest another run's number be recorded
    assert len(shown) == before
    wider.recorded("one-width", 8.0)
    assert shown[before][1]["racing"]["measured"] == 8.0


def test_a_row_is_escaped_typeset_and_has_an_address(shown):
    claims.show(claim(claim=r"a < b & <script>, $\sqrt{M}$, `x_1`, *not* 2*3*4."), {"<x>": 2.0}, "reproduced")
    page = shown[0][0]["text/html"]
    assert "<script>" not in page and "<x>" not in page and 'id="a"' in page and 'href="#a"' in page
    assert r'<span class="math notranslate nohighlight">\(\sqrt{M}\)</span>, <code>x_1</code>, <em>not</em> 2*3*4.' in page


def test_slips_and_our_own_findings_have_words_of_their_own(shown):
    claims.show(claim(erratum="e"), 3.0, "not reproduced")
    claims.show(claim(author="book"), 2.0, "reproduced")
    claims.show(claim(), 2.0, "reproduced")
    assert [data["text/plain"].split("]")[0] for data, _ in shown] == ["[slip in print", "[holds", "[reproduced"]
    assert shown[0][1]["racing"]["verdict"] == "not reproduced"  # the record keeps what was measured


def test_a_recorded_run_decides_and_the_page_says_its_own_verdict_in_brackets(shown):
    claims.show(claim(note="more networks"), 3.0, "not reproduced", finding="reproduced")
    claims.show(claim(), 2.0, "reproduced", finding="reproduced")
    both, one = (data["text/html"] for data, _ in shown)
    assert "reproduced (by a recorded run; on this page: not reproduced)</td>" in both and 'class="check reproduced ' in both
    assert "reproduced</td>" in one


# --- files that are wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('expect: "= 6"', 'expect: "= 6"\n  expect: "= 7"', "line 9: 'expect' stands there twice"),
        ('expect: "= 6"', "expect: about six", "paper/one-width: expect must be '= x'"),
        ('expect: "= 6"', 'expect: "= 1/0"', "paper/one-width: '1/0' is not a number or a simple formula"),
        ('"in [1, 4]"', '"in [4, 1]"', r"paper/one-parts: the range 'in \[4, 1\]' is empty"),
        ("tolerance: 0.01", "tolerance: ''", "'=' needs a tolerance"),
        ("tolerance: 0.01", "tolerance: -5 %", "the tolerance '-5 %' is negative"),
        ("reason: exact", "note: x", "missing required field 'reason'"),
        ("verdict: reproduced", "verdict: maybe", "Invalid enum value 'maybe'"),
        ("verdict: reproduced", "verdict: not reproduced", "needs a note"),
        ("verdict: reproduced", "verdict: recorded", "needs a 'finding'"),
        ("author: paper", "author: correction", "'erratum' goes with"),
        ("author: paper", "author: paper\n  rank: main", "a main result has"),
        ("where: Eq. 1", "where: Eq. 1\n  colour: red", "unknown field 'colour'"),
        ("where: Eq. 1", "where: Eq. 1\n  format: '.2q'", "'.2q' is no format"),
        ("id: two-width", "id: one-width", "paper/one-width: the id is there twice"),
        ("title: A paper", "title: A paper\n\t- x", "is not valid YAML"),
    ],
)
def test_a_wrong_claims_file_is_one_sentence_that_names_the_entry(repository, old, new, message):
    repository.edit("book/paper/claims.yml", old, new)
    with pytest.raises(Problem, match=message) as error:
        claims.load("paper", repository.book)
    assert len(str(error.value).splitlines()) == 1


# --- the book's own claims -------------------------------------------------------------------------------------------


def test_ids_are_unique_in_the_book():
    ids = [name for paper in PAPERS for name in claims.load(paper)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_is_checked_by_its_page_with_the_declared_verdict(paper):
    for name, entry in claims.load(paper).items():
        measured = claims.measured_in(entry.page)
        assert name in measured, f"{entry.page} does not check {name}"
        assert measured[name]["verdict"] == entry.verdict, name
        if entry.verdict not in ("recorded", "undetermined"):
            again = judge(entry, measured[name]["measured"], measured[name].get("interval"))
            assert again == entry.verdict, f"{name}: the stored number says otherwise"


@pytest.mark.parametrize("paper", PAPERS)
def test_the_largest_run_decides_and_its_finding_is_declared(paper):
    for name, entry in claims.load(paper).items():
        there = claims.recorded_in(entry.page).get(name)
        if there is None:
            assert not entry.finding, f"{name} declares a finding, but no recorded run measured it"
        elif entry.finding or entry.verdict != "undetermined":
            found = judge(entry, there["measured"], there.get("interval"))
            assert found == (entry.finding or entry.verdict), f"{name}: declare what the run found"


@pytest.mark.parametrize("paper", PAPERS)
def test_slips_come_in_pairs_that_differ_in_verdict(paper):
    halves: dict[str, dict[str, list[str]]] = {}
    for entry in claims.load(paper).values():
        if entry.erratum:
            halves.setdefault(entry.erratum, {}).setdefault(entry.kind, []).append(entry.verdict)
    assert set(halves) <= set(claims.errata(paper))
    for name, pair in halves.items():
        assert set(pair) == {"printed", "corrected"}, f"{name} lacks a half"
        assert "reproduced" not in pair["printed"], f"{name}: the printed form holds"
        assert set(pair["corrected"]) == {"reproduced"}, f"{name}: the corrected form fails"


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in ("deep_linear", "synthesis")])
def test_every_paper_has_three_to_six_main_results_and_their_figures_are_drawn(paper):
    main = [entry for entry in claims.load(paper).values() if entry.rank == "main"]
    assert 3 <= len(main) <= 6
    for entry in main:
        assert entry.hero in pages.figures(pages.find(entry.page)), f"{entry.id}: {entry.hero} is not drawn on {entry.page}"
        assert len(entry.result) <= 160 and entry.author != "correction", entry.id
