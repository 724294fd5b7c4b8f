"""Verdicts: which one counts, one way of counting, the distance from the bound."""

import pytest

from lib import claims
from lib.book import pages, verdicts
from lib.claims import SLIP, Claim

BOOK = pages.ROOT / "book"
HELD, FELL = {"measured": 1.0, "verdict": "reproduced"}, {"measured": 3.0, "verdict": "not reproduced"}


def claim(**changes) -> Claim:
    base = {"id": "a", "page": "p/x", "where": "Eq. 1", "claim": "It is so.", "expect": "< 2", "reason": "r"}
    return Claim(**(base | {"verdict": "reproduced", "author": "paper"} | changes))


def test_the_largest_run_decides():
    assert verdicts.verdict(claim(), HELD) == "reproduced" and verdicts.on_laptop(claim(), HELD) == ""
    larger = claim(finding="not reproduced", note="n")
    assert verdicts.verdict(larger, HELD) == "not reproduced" and verdicts.on_laptop(larger, HELD) == "reproduced"
    recorded = claim(verdict="recorded", finding="reproduced")
    assert verdicts.verdict(recorded, {"measured": 1.0, "verdict": "recorded"}) == "reproduced"
    assert verdicts.verdict(claim(), None) == "open"


def test_a_printed_form_that_fails_is_a_slip_and_one_that_holds_is_not():
    assert verdicts.verdict(claim(erratum="e"), FELL) == SLIP
    assert verdicts.verdict(claim(erratum="e"), HELD) == "reproduced"
    assert verdicts.verdict(claim(erratum="e", author="correction"), HELD) == "reproduced"


def test_counts_keep_papers_and_this_book_apart_and_leave_checks_out():
    rows = [
        (claim(rank="main", result="r", hero="h"), HELD),
        (claim(), FELL),
        (claim(erratum="e"), FELL),
        (claim(erratum="e", author="correction"), HELD),
        (claim(author="book", rank="main", result="r", hero="h"), HELD),
        (claim(author="book"), FELL),
        (claim(rank="check"), HELD),
    ]
    assert verdicts.count(rows) == {
        "papers' main results": {"reproduced": 1},
        "our main results": {"reproduced": 1},
        "statements": {"reproduced": 1, "not reproduced": 1},
        "findings": {"reproduced": 1, "not reproduced": 1},
        "slips": {SLIP: 1},  # both halves are one slip
        "checks": {"reproduced": 1},
    }


def test_slack_counts_spreads_to_the_nearest_bound():
    assert verdicts.slack(claim(), 1.0, {"": 0.25}) == 4
    assert verdicts.slack(claim(expect="in [0, 10]"), {"a": 1.0, "b": 5.0}, {"a": 0.5, "b": 0.1}) == 2
    assert verdicts.slack(claim(), 1.0, {"": 0.0}) is None and verdicts.slack(claim(expect="true"), True, {}) is None


def test_the_spread_is_that_of_other_seeds_or_else_the_standard_error():
    interval = {"mean": 1.0, "low": 0.5, "high": 1.5, "spread": 0.6, "seeds": 9}
    record = {"measured": 1.0, "interval": interval}
    assert verdicts.spread(record, {"spread": {"": 0.1}}) == {"": 0.1}
    assert verdicts.spread(record, None) == {"": pytest.approx(0.2)}
    assert verdicts.spread({"measured": 1.0}, None) == {} == verdicts.spread(None, None)


def test_other_seeds_count_only_for_the_row_that_they_were_measured_for():
    seen = {"least": {"a": 1.0, "b": 2.0}, "most": {"a": 1.5, "b": 2.0}, "seeds": [1, 2], "flips": 1}
    assert verdicts.still_true(seen, {"measured": {"a": 1.2, "b": 2.0001}}) is seen
    for measured in ({"a": 1.6, "b": 2.0}, {"a": 1.2}, {"a": 1.2, "b": 2.0, "c": 1.0}, 1.2):
        assert verdicts.still_true(seen, {"measured": measured}) is None
    yes = {"seeds": [1, 2], "flips": 0}
    assert verdicts.still_true(yes, {"measured": True}) is yes and verdicts.still_true(None, None) is None


def test_other_seeds_are_known_for_rows_that_exist():
    known = verdicts.other_seeds(BOOK)
    ids = {name for paper in claims.papers() for name in claims.load(paper)}
    assert set(known) <= ids
