"""Verdicts: intervals over seeds, rows with addresses and mathematics, which verdict counts, slack, other seeds."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from lib.press import claims, environment, pages
from lib.press.claims import Claim, ClaimError
from lib.press.verdicts import intervals, rows, seeds, standing


def claim(**changes) -> Claim:
    base = {"id": "a", "folder": "p", "page": "p/x", "where": "Eq. 1", "claim": "It is so.", "expect": "< 2"}
    return Claim(**(base | {"reason": "r", "verdict": "reproduced"} | changes))


@pytest.fixture
def shown(monkeypatch):
    found = []
    monkeypatch.setattr(claims, "publish", lambda data, metadata: found.append((data, metadata)))
    return found


@pytest.mark.parametrize("n", [2, 5, 30])
def test_interval_is_students(n):
    values = np.random.default_rng(n).normal(3, 2, n).tolist()
    found = intervals.over_seeds(values)
    low, high = stats.t.interval(0.95, n - 1, np.mean(values), stats.sem(values))
    assert np.allclose([found.low, found.high, found.spread], [low, high, np.std(values, ddof=1)], rtol=1e-9)
    assert found.seeds == n and math.isclose(found.mean, np.mean(values))


def test_an_interval_needs_two_finite_numbers():
    for values in ([1.0], [], [1.0, math.nan], [1.0, math.inf]):
        with pytest.raises(ClaimError):
            intervals.over_seeds(values)


def test_intervals_cover_as_often_as_they_say():
    draws = np.random.default_rng(0).normal(0, 1, (2000, 5))
    held = [found.low < 0 < found.high for found in map(intervals.over_seeds, draws.tolist())]
    assert abs(np.mean(held) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_intervals_end_where_a_number_can_no_longer_be():
    few = [0.0, 0.0, 0.9]
    plain, share = intervals.over_seeds(few), intervals.over_seeds(few, "share")
    assert plain.low < 0 and plain.high > 1 and (share.low, share.high) == (0.0, 1.0)
    size = intervals.over_seeds(few, "size")
    assert (size.low, size.high) == (0.0, plain.high) and size.mean == plain.mean
    inside = intervals.over_seeds([0.4, 0.5, 0.6], "share")
    assert inside == intervals.over_seeds([0.4, 0.5, 0.6])


@pytest.mark.parametrize(("yes", "n"), [(0, 5), (3, 7), (12, 12), (11, 12)])
def test_a_share_of_yes_and_no_has_wilsons_interval(yes, n):
    found = intervals.over_seeds([1.0] * yes + [0.0] * (n - yes), "share")
    expected = stats.binomtest(yes, n).proportion_ci(method="wilson")
    assert np.allclose([found.low, found.high], expected, atol=1e-12)


def test_a_claim_says_what_its_number_can_be(repository, shown):
    check = checked(repository, a=("verdict: reproduced", "verdict: reproduced\n  nature: size"))
    check("one-width", 6.0, over=[0.0, 0.0, 6.0])
    assert shown[0][1]["racing"]["interval"]["low"] == 0.0


def checked(repository, **changes):
    for new in changes.values():
        repository.edit("book/paper/claims.yml", *new)
    return claims.Check("paper/one", {"width": 3, "name": "x"}, repository.root / "book")


def test_check_over_seeds_measures_the_mean_and_keeps_the_interval(repository, shown):
    checked(repository)("one-width", over=torch.tensor([5.996, 6.0, 6.004], dtype=torch.float64))
    record = shown[0][1]["racing"]
    assert record["measured"] == pytest.approx(6.0) and record["interval"]["seeds"] == 3
    assert record["interval"]["high"] - 6 == pytest.approx(4.302652729911275 * 0.004 / math.sqrt(3))
    assert "n = 3" in shown[0][0]["text/html"] and "[5.99, 6.01]" in shown[0][0]["text/html"]


def test_check_over_seeds_takes_parts_and_another_statistic(repository, shown):
    check = checked(repository)
    check("one-parts", over={"b": [2.0, 3.0], "a": [1.0, 2.0]})
    assert shown[0][1]["racing"]["measured"] == {"b": 2.5, "a": 1.5}
    check("one-width", 6.0, over=[5.0, 9.0])  # the median, say, is judged; the mean's interval is shown
    assert shown[-2][1]["racing"]["measured"] == 6.0 and shown[-2][1]["racing"]["interval"]["mean"] == 7.0


def test_undetermined_is_a_verdict_that_binds(repository, shown, monkeypatch):
    monkeypatch.delenv("RACING_DRAFT", raising=False)
    check = checked(repository, a=("verdict: reproduced", "verdict: undetermined\n  note: within the noise"))
    check("one-width", over=[5.0, 7.0])  # the interval holds the bound
    assert shown[0][1]["racing"]["verdict"] == "undetermined"
    check("one-width", 6.0)  # nothing to decide it with
    with pytest.raises(claims.VerdictChanged, match="measured 'reproduced'"):
        check("one-width", over=[6.0, 6.0001])


def test_row_has_an_address_and_typeset_mathematics(shown):
    rows.show(claim(claim=r"It grows as $\sqrt{M}$ & `x_1`, *not* 2*3*4."), 1.5, "reproduced")
    text = shown[0][0]["text/html"]
    assert 'id="a"' in text and 'href="#a"' in text
    assert r'<span class="math notranslate nohighlight">\(\sqrt{M}\)</span> &amp; <code>x_1</code>, <em>not</em> 2*3*4.' in text


def test_slips_and_our_own_findings_have_words_of_their_own(shown):
    rows.show(claim(erratum="e", verdict="not reproduced", note="n"), 3.0, "not reproduced")
    rows.show(claim(author="book"), 1.0, "reproduced")
    rows.show(claim(), 1.0, "reproduced")
    assert [data["text/plain"].split("]")[0] for data, _ in shown] == ["[slip in print", "[holds", "[reproduced"]
    assert shown[0][1]["racing"]["verdict"] == "not reproduced"  # the record keeps what was measured


def test_the_largest_run_decides():
    record = {"id": "a", "measured": 1.0, "verdict": "reproduced"}
    assert standing.verdict(claim(), record) == "reproduced" and standing.on_laptop(claim(), record) == ""
    recorded = claim(finding="not reproduced", note="n")
    assert standing.verdict(recorded, record) == "not reproduced"
    assert standing.on_laptop(recorded, record) == "reproduced"
    assert standing.verdict(claim(), None) == "open"
    assert standing.verdict(claim(erratum="e"), record | {"verdict": "not reproduced"}) == "slip in print"


def test_the_index_has_figures_before_equations_appendices_by_letter_and_named_statements_last():
    from lib.press.rendering import verdict_pages

    ordered = [("Figure", n) for n in ("2", "4a", "4f", "10", "B.1")] + [
        ("Eq.", n) for n in ("3", "13-14", "A.2", "A.11", "C.1", "Proposition 3", "Theorem 1")
    ]
    assert sorted(reversed(ordered), key=verdict_pages.order) == ordered
    assert [verdict_pages.own_name(n) for n in ("Proposition 3", "B.2", "4a")] == ["Proposition", "", ""]


def test_totals_are_apart_by_author_and_leave_checks_out():
    held, fell = ({"measured": value, "verdict": verdict} for value, verdict in ((1.0, "reproduced"), (3.0, "not reproduced")))
    there = [
        (claim(rank="main", result="r", hero="h"), held),
        (claim(), fell),
        (claim(erratum="e"), fell),
        (claim(erratum="e", author="correction"), held),
        (claim(author="book"), held),
        (claim(rank="check"), held),
    ]
    total = standing.totals(there)
    assert total["main"] == {"reproduced": 1} and total["book"] == {"reproduced": 1} and total["slips"] == {"slip in print": 1}
    assert total["paper"] == {"reproduced": 1, "not reproduced": 1}


def test_slack_counts_spreads_to_the_nearest_bound():
    assert standing.slack(claim(), 1.0, {"": 0.25}) == 4
    assert standing.slack(claim(expect="in [0, 10]"), {"a": 1.0, "b": 5.0}, {"a": 0.5, "b": 0.1}) == 2
    assert standing.slack(claim(), 1.0, {"": 0.0}) is None and standing.slack(claim(expect="true"), True, {}) is None


def test_the_spread_is_that_of_other_seeds_or_else_the_standard_error():
    interval = {"mean": 1.0, "low": 0.5, "high": 1.5, "spread": 0.6, "seeds": 9}
    record = {"measured": 1.0, "interval": interval}
    assert standing.spread(record, {"spread": {"": 0.1}}) == {"": 0.1}
    assert standing.spread(record, None) == {"": pytest.approx(0.2)}
    parts = {"measured": {"a": 1.0, "b": 2.0}, "interval": {"a": interval, "b": interval | {"spread": 0.0}}}
    assert standing.spread(parts, {}) == {"a": pytest.approx(0.2)}
    assert standing.spread({"measured": 1.0}, None) == {} == standing.spread(None, None)


@pytest.mark.parametrize(
    ("expect", "tolerance", "measured", "times"),
    [
        ("< 2", "", 0.5, 4),
        ("< 2", "", {"a": 0.5, "b": -1.0}, 2),
        ("< 2", "", 3.0, None),  # it does not hold
        ("> 2", "", 300.0, None),  # a strong effect is no fault
        ("in [1, 3]", "", 2.1, 10),
        ("= 10", "5 %", 10.1, 5),
        ("= 10", "5 %", 10.0, float("inf")),
        ("true", "", True, None),
    ],
)
def test_how_many_times_wider_a_bound_is_than_the_number(expect, tolerance, measured, times):
    found = standing.times(claim(expect=expect, tolerance=tolerance), measured)
    assert found == (times if times is None else pytest.approx(times))


def test_a_bound_that_feels_nothing_is_listed(executed, forks):
    book = executed.root / "book"
    wide = {"seeds": [1], "flips": 0, "spread": {"": 0.01}}
    executed.write("book/seeds.json", json.dumps({"one-width": wide, "two-width": wide}))
    assert standing.blunt(book) == []  # 6 ± 0.01, and measured is 6; but an identity, as the reason says
    text = executed.read("book/paper/claims.yml").replace("tolerance: 0.01", "tolerance: 5").replace("reason: exact", "reason: r")
    executed.write("book/paper/claims.yml", text)
    assert [(one.id, away, times) for one, _, away, times in standing.blunt(book)] == [
        ("one-width", pytest.approx(500), float("inf")),
        ("two-width", pytest.approx(500), float("inf")),
    ]
    done = executed.run("slack")
    assert done.returncode == 0 and "one-width" in done.stdout and "2 rows with a bound more than 10 spreads" in done.stdout
    executed.write("book/seeds.json", json.dumps({"one-width": wide | {"spread": {"": 1.0}}}))
    assert standing.blunt(book) == []  # five spreads away
    assert "slack 5" in executed.run("slack", "--all").stdout
    assert "there is no" in executed.run("slack", "nonsense").stderr


def test_other_seeds_are_compared_with_the_books_run(executed):
    page = pages.find("paper/one", executed.root)
    width = claims.measured_in("paper/one", executed.root / "book")["one-width"]["measured"]
    tried = [{"results": {"one-width": {"measured": width + change, "verdict": "reproduced"}}} for change in (0.0, 0.003, 5.0)]
    seen = seeds.compare(page, tried, [1, 2, 3])["one-width"]
    assert seen["flips"] == 1 and seen["most"][""] == width + 5  # judged anew: the row's own word does not count
    assert seen["spread"][""] == pytest.approx(np.std([width, width, width + 0.003, width + 5], ddof=1))
    lines = seeds.table(page, {"one-width": seen})
    assert "FLIPS 1/3" in lines[0] and "slack 0.0" in lines[0]
    path = seeds.keep(executed.root / "book", {"one-width": seen, "gone": seen})
    assert list(json.loads(path.read_text())) == ["one-width"]  # rows that are gone are dropped
    assert standing.other_seeds(executed.root / "book")["one-width"]["flips"] == 1


def test_the_command_runs_other_seeds_and_says_which_verdicts_flip(executed, forks):
    done = executed.run("seeds", "paper/one")
    assert done.returncode != 0 and "no parameter 'seed'" in done.stderr + done.stdout
    executed.edit("book/paper/one.md", "width: int = 3", "seed: int = 0  # moves the result [0, 9]\nwidth: int = 3")
    text = (executed.root / "book/paper/one.md").read_text()
    executed.write("book/paper/one.md", text.replace('check("one-width", ', 'check("one-width", (seed == 2) + '))
    assert executed.run("execute", "paper/one").returncode == 0
    done = executed.run("seeds", "paper/one", "--count", "2", "--record")
    assert done.returncode == 1 and "FLIPS 1/2" in done.stdout and "1 flip: one-width" in done.stdout
    assert standing.other_seeds(executed.root / "book")["one-width"]["seeds"] == [1, 2]
    again = executed.run("seeds", "paper/one", "--count", "3", "--known", "--record")  # the third was never run, nor is it now
    assert again.returncode == 1 and "FLIPS 1/2" in again.stdout
    assert standing.other_seeds(executed.root / "book")["one-width"]["seeds"] == [1, 2]


def test_every_row_whose_seeds_are_known_shows_its_slack_on_the_scoreboard():
    from types import SimpleNamespace

    from lib.press.rendering import boards

    book, here = environment.ROOT / "book", SimpleNamespace(link=lambda one: "#")
    known, shown = standing.other_seeds(book), 0
    for one, record in standing.every(book):
        seen, verdict = known.get(one.id), standing.verdict(one, record)
        card = boards.Scoreboard.card(here, one, record, verdict, seen)
        if seen:
            shown += 1
            assert "<b>slack</b>" in card, one.id
            moves = seen["flips"] or any((seen.get("spread") or {}).values())
            assert moves or f"the same with {len(seen['seeds'])} other seed" in card, one.id
    assert shown == len(known) > 200
