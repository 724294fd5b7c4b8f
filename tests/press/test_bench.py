"""The bench: both programs of every case give the same numbers, costs and slopes are counted right, the record has a schema."""

import copy
import json
import sys
from types import SimpleNamespace

import pytest
import torch

from lib.press.bench import authors, figure, machine, record, running, tables, timing
from lib.press.bench.record import BenchError
from lib.press.rendering import benches
from lib.press.workbench import commands

QUICK = timing.Effort(turns=2, passes=2, seconds=0.0)
SMALL = {  # sizes at which a case takes milliseconds
    "deep-linear": {"seeds": 2, "width": 8, "items": 30},
    "routing": {"seeds": 2, "domains": 3, "trained": 2, "hidden": 12},
    "reduction": {"modes": 5},
    "figure-4": {"hidden": 50},
    "figure-4-gated": {"width": 50},
    "early-linearization": {"seeds": 2, "hidden": 16, "items": 8},
    "paths": {"paths": 3, "items": 40, "seeds": 2},
    "random-functions": {"seeds": 3, "width": 16, "depth": 3, "m": 16},
    "measures": {"images": 4, "m": 32},
    "lempel-ziv": {"images": 4, "m": 16},
    "adam": {"seeds": 2, "width": 8, "points": 20},
    "biases": {"units": 60, "images": 250},
    "biases-16-bit": {"units": 60, "images": 250},
    "recurrent": {"seeds": 2, "units": 12, "window": 20},
    "transformers": {"seeds": 2, "scales": 2, "length": 12},
}
EVERY = [(name, precision) for name, case in running.CASES.items() for precision in case.precisions]


def built(name, precision):
    return running.CASES[name].build(getattr(torch, precision, torch.float64), **SMALL[name])


@pytest.mark.parametrize(("name", "precision"), EVERY)
def test_fast_and_plain_give_the_same_numbers(name, precision):
    """Within the tolerance that the bench itself asserts, which is far below one per cent in every case."""
    pair = built(name, precision)
    assert timing.difference(pair) <= pair.tolerance <= 2e-3
    assert pair.flops or pair.bytes


def test_every_size_whose_growth_is_followed_has_a_colour():
    assert all(figure.kind_of(size) for case in running.CASES.values() for size in case.grows)


@pytest.mark.parametrize("name", ["routing", "biases-16-bit", "lempel-ziv"])
def test_an_error_of_one_per_cent_is_refused(name):
    pair = built(name, running.CASES[name].precisions[0])
    wrong = timing.Pair(pair.fast, lambda: 1.01 * pair.plain(), pair.amounts, pair.tolerance, look=pair.look)
    with pytest.raises(BenchError, match=f"{name}: the fast and the plain program differ by .*; rounding explains"):
        timing.compare(wrong, QUICK, name)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (torch.ones(2), torch.ones(3), "returns .2,., the plain one .3,."),
        (torch.zeros(2), torch.zeros(2), "nothing but zeros"),
        (torch.tensor([torch.nan]), torch.ones(1), "not finite"),
    ],
)
def test_numbers_that_cannot_be_compared_are_refused(ours, theirs, words):
    with pytest.raises(BenchError, match=words):
        timing.difference(timing.Pair(lambda: ours, lambda: theirs, (1, 1), 1.0))


def test_ratios_are_those_of_the_turns(monkeypatch):
    """A clock worked by hand: the fast program takes 2, 4, 2 seconds for two units, the plain one 30, 40, 50 for one."""
    clock, taken = [0.0], {"fast": iter([0, 2, 4, 2]), "plain": iter([0, 30, 40, 50])}

    def program(name):
        clock[0] += next(taken[name])
        return torch.ones(1)

    monkeypatch.setattr(timing, "time", SimpleNamespace(process_time=lambda: clock[0]))
    pair = timing.Pair(lambda: program("fast"), lambda: program("plain"), (2.0, 1.0), 0.0)
    found = timing.compare(pair, timing.Effort(turns=3, seconds=0.0))
    assert found["fast"] == {"median": 1.0, "low": 1.0, "high": 2.0}
    assert found["plain"] == {"median": 40.0, "low": 30.0, "high": 50.0}
    assert found["ratio"] == {"median": 30.0, "low": 20.0, "high": 50.0}


def test_a_measurement_takes_as_long_as_it_should():
    runs = []
    seconds = timing.processor_seconds(lambda: runs.append(sum(range(20000))), 0.02)
    assert len(runs) > 2 and 0.02 / len(runs) <= seconds < 0.02


def test_slopes_by_hand():
    sizes = [1.0, 2.0, 4.0, 8.0]
    assert timing.slope(sizes, [3 * size**1.5 for size in sizes]) == (pytest.approx(1.5), pytest.approx(0.0, abs=1e-9))
    steep, error = timing.slope([1.0, 2.0, 4.0], [1.0, 4.0, 4.0])  # logs (0, 0), (1, 2), (2, 2) in base 2
    assert steep == pytest.approx(1.0) and error == pytest.approx((2 / 3 / 2) ** 0.5)


def test_growth_counts_operations():
    found = timing.growth(
        lambda n: timing.Pair(lambda: sum(range(n)), None, (1, 1), 0, flops=5.0 * n**2), (10**4, 10**5, 10**6), QUICK
    )
    assert found["expected"] == 2.0 and found["sizes"] == [10**4, 10**5, 10**6] and len(found["seconds"]) == 3
    assert found["slope"] == pytest.approx(1.0, abs=0.5)  # a sum over n numbers


def test_the_share_of_peak_by_hand():
    best = {"float32": 100.0, "float64": 50.0, "memory": 10.0}
    pair = timing.Pair(None, None, (1, 1), 0.0, flops=200.0, bytes=30.0)
    assert machine.share(pair, "float32", 6.0, best) == {"share": 0.5, "bound": "memory"}  # two seconds against three
    assert machine.share(pair, "float64", 5.0, best) == {"share": 0.8, "bound": "arithmetic"}
    assert machine.share(pair, "whole numbers", 30.0, best) == {"share": 0.1, "bound": "memory"}
    assert machine.share(timing.Pair(None, None, (1, 1), 0.0), "float32", 1.0, best) is None


def test_the_machine_at_its_best(monkeypatch):
    monkeypatch.setattr(machine, "SIDE", 128)
    monkeypatch.setattr(machine, "NUMBERS", 2**18)
    best = machine.peaks(timing.Effort(turns=3))
    assert best["float32"] > best["float64"] > 1e8 and best["memory"] > 1e8
    assert all(machine.description().values())


@pytest.fixture
def tiny(monkeypatch):
    """A bench of two small cases on a machine that is measured at once."""
    cases = {}
    for name in ("reduction", "lempel-ziv"):
        case = running.CASES[name]
        grows = {"modes": ((4, 8, 16), {})} if name == "reduction" else {"images": ((4, 8, 12), {})}
        cases[name] = timing.Case(case.title, case.plain, case.unit, case.build, SMALL[name], grows, case.precisions, case.hot)
    monkeypatch.setattr(running, "CASES", cases)
    monkeypatch.setattr(machine, "peaks", lambda effort: {"float32": 1e11, "float64": 5e10, "memory": 1e10})
    return cases


def test_a_whole_bench_is_recorded_and_read_again(tiny, tmp_path):
    said = []
    found = running.run(effort=QUICK, say=said.append)
    assert set(found["cases"]) == set(tiny) and torch.get_num_threads() >= 1
    assert "peak" not in found["cases"]["reduction"]["precisions"]["float64"]  # not hot
    assert found["cases"]["lempel-ziv"]["precisions"]["whole numbers"]["difference"] == 0
    path = record.write(found, tmp_path)
    assert path == tmp_path / "book/bench.json" and record.read(tmp_path) == json.loads(path.read_text("utf-8"))
    assert record.read(tmp_path) == found and record.read(tmp_path / "elsewhere") is None
    assert any("cost grows with modes" in text for text in said) and any("GB/s" in text for text in said)


def test_every_field_of_a_record_is_checked(tiny):
    found = running.run(["lempel-ziv"], effort=QUICK)
    case = ("cases", "lempel-ziv")
    wrongs = [
        (("date",), "yesterday", "date 'yesterday'"),
        (("seconds",), -1, "'seconds' must be a time"),
        (("peaks", "memory"), "fast", "peaks: 'memory' must be a number"),
        (("machine", "torch"), None, "machine: 'torch' is missing"),
        ((*case, "unit"), None, "lempel-ziv: 'unit' is missing"),
        ((*case, "precisions", "whole numbers", "ratio", "low"), None, "ratio: 'low' is missing"),
        ((*case, "precisions", "whole numbers", "peak", "bound"), "luck", "bound 'luck' is none of"),
        ((*case, "growth", "images", "slope"), "steep", "images: 'slope' must be a number"),
        ((*case, "growth", "images", "sizes"), [1, 2], "three sizes or more"),
        (("authors",), {"x": {"commit": "abc"}}, "neither times nor a sentence"),
        (("extra",), 1, "unknown field extra"),
    ]
    for path, value, words in wrongs:
        broken = copy.deepcopy(found)
        inner = broken
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        with pytest.raises(BenchError, match=words):
            record.checked(broken, "the bench")


def test_the_recorded_bench_holds():
    """What the book shows: all cases, by the schema; plain programs cost more than ours."""
    found = record.read()
    assert found is not None and set(found["cases"]) == set(running.CASES)
    for name, row in found["cases"].items():
        assert set(row["precisions"]) == set(running.CASES[name].precisions) and set(row["growth"]) == set(
            running.CASES[name].grows
        )
        assert all(
            each["ratio"]["median"] > 1 and each["peak"]["share"] < 1.05 for each in row["precisions"].values() if "peak" in each
        )


def test_the_command(tiny, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(running, "Effort", lambda: QUICK)
    assert commands.main(["bench", "lempel-ziv"]) == 0
    said = capsys.readouterr().out
    assert "| Lempel-Ziv" in said and "| images, 4 to 12 |" in said and "processor seconds" in said and "recorded" not in said
    monkeypatch.setattr(running, "ROOT", tmp_path)
    write = record.write
    monkeypatch.setattr(record, "write", lambda found: write(found, tmp_path))
    assert commands.main(["bench", "--record"]) == 0
    assert "recorded as book/bench.json" in capsys.readouterr().out
    assert record.read(tmp_path)["cases"].keys() == tiny.keys()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "there is no case 'nonsense'; there are deep-linear, routing"),
        (["routing", "--record"], "only a whole bench is recorded"),
        (["routing", "--authors", "/nowhere/at/all"], "there is no folder /nowhere/at/all"),
        (["routing", "--authors", "lib"], "no checkout to time"),
    ],
)
def test_refusals(arguments, words, capsys):
    assert commands.main(["bench", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.strip().splitlines()) == 1


# --- the authors' programs: stand-ins of a few lines ------------------------------------------------------------------------

SCRIPT = "import numpy as np\nnp.savetxt('losses/{0}.txt', np.arange(3.0))\nif __name__ == '__main__':\n    sum(range(10**5))\n"
CELLS = [
    ["%matplotlib inline\n", "import numpy as np\n"],
    ["class GatedDLN: pass\n", "for _ in range(50): np.linalg.svd(np.eye(30))\n"],
    ["raise RuntimeError('not asked for')\n"],
]
# Modules that the interpreter of the tests does not have, and those that take a second to load: all that is asked of them.
STAND_INS = {
    "jax/__init__.py": "",
    "jax/numpy.py": "",
    "omegaconf.py": "",
    "matplotlib/__init__.py": "def use(backend): pass\n",
    "matplotlib/pyplot.py": "def savefig(path): pass\ndef plot(*lines): pass\n",
    "torch.py": "def set_num_threads(number): pass\n",
    "scipy/__init__.py": "",
    "scipy/integrate.py": "",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "papers"
    for name in authors.SCRIPTS:
        path = folder / "haste" / authors.HASTE / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT.format(name), "utf-8")
    notebook = folder / "race" / authors.NOTEBOOK
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in CELLS]}), "utf-8")
    for name, text in STAND_INS.items():
        path = tmp_path / "modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "modules"} exec {sys.executable} "$@"\n', "utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(authors, "figure_4", lambda dtype: 0.5 if dtype == torch.float32 else 1.0)
    monkeypatch.setattr(authors, "routing_networks", lambda dtype: 1.0)
    return SimpleNamespace(folder=folder, python=str(python))


def test_the_authors_programs_run_in_a_copy(checkout):
    before = sorted(checkout.folder.rglob("*"))
    found = authors.timed(checkout.folder, checkout.python)
    assert sorted(checkout.folder.rglob("*")) == before
    haste, race = found["make-haste-slowly"], found["gated-dln"]
    assert set(haste["programs"]) == set(authors.SCRIPTS)
    for taken in (*haste["programs"].values(), *race["programs"].values()):
        assert 0 <= taken["writing"] <= taken["own"] < taken["whole"]
    bare = sum(taken["own"] - taken["writing"] for taken in haste["programs"].values())
    assert haste["theirs"]["bare"] == pytest.approx(bare, rel=1e-3) and haste["ours"] == {"float32": 0.5, "float64": 1.0}
    assert haste["ratio"]["float32"] == pytest.approx(bare / 0.5, rel=1e-3)
    assert race["programs"]["notebook"]["writing"] > 0 and race["ours"]["float64"] == pytest.approx(1 / 5000)
    table = tables.authors_table({"authors": found})
    assert "make-haste-slowly" in table and "by network and epoch" in table


def test_a_program_that_cannot_run_is_a_sentence(checkout):
    (checkout.folder / "haste" / authors.HASTE / "race.py").write_text("raise ValueError('of their own')\n", "utf-8")
    found = authors.timed(checkout.folder, checkout.python)
    assert found["make-haste-slowly"]["sentence"] == "not timed: race.py stops here (ValueError: of their own)"
    lacking = authors.missing(sys.executable, "script")
    assert "jax" in lacking or lacking == ""
    assert "not timed: " in tables.authors_table({"authors": {"make-haste-slowly": {"sentence": "not timed: x"}}})
    with pytest.raises(BenchError, match="is no Python that can be started"):
        authors.missing("/nowhere/python", "script")


def test_our_programs_for_the_authors_figures_run():
    assert authors.figure_4(torch.float32, epochs=3) > 0 and authors.routing_networks(torch.float64, 2, 3) > 0


# --- words and pictures -----------------------------------------------------------------------------------------------------


def test_numbers_in_words():
    assert [tables.digits(value) for value in (0.0571, 3.72, 64.8, 1312.0, 0.5)] == ["0.057", "3.7", "65", "1,300", "0.5"]
    spread = {"median": 2.9e-5, "low": 2.8e-5, "high": 3.1e-5}
    assert (
        tables.time_words(spread) == "29 µs (28–31)"
        and tables.ratio_words({"median": 102, "low": 98, "high": 110}) == "100 times (98–110)"
    )
    assert tables.time_words({"median": 0.25, "low": 0.2, "high": 1.0}) == "250 ms (200–1,000)"


def test_the_page_shows_the_record(tmp_path):
    """Every part of the recorded bench is made, with the figure; without a record there is a sentence."""
    found = record.read()
    parts = [benches.Bench.machine(None, found), benches.Bench.ratios(None, found), benches.Bench.authors(None, found)]
    assert found["date"] in parts[0] and parts[1].count("\n| ") >= len(found["cases"]) and parts[2]
    picture = tmp_path / "figures" / "growth.png"
    figure.draw(found, picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    for name, row in found["cases"].items():
        assert all(figure.kind_of(size)[0] for size in row["growth"]), name
    assert "python -m lib bench --record" in benches.NO_BENCH and "python -m lib mutate --record" in benches.NO_MUTANTS


def test_the_page_shows_the_planted_errors(tmp_path):
    assert benches.planted(tmp_path) == benches.NO_MUTANTS
    counts = {"possible": 60, "planted": 50, "caught": 45, "stopped": 0, "equivalent": 3, "survived": 2}
    survivor = {"module": "linear/theory", "line": 7, "function": "modes", "before": "2", "after": "2.02", "reached": True}
    found = {"date": "2026-11-17", "modules": {"linear/theory": counts}, "survivors": [survivor]}
    (tmp_path / "book").mkdir()
    (tmp_path / "book/mutants.json").write_text(json.dumps(found), "utf-8")
    text = benches.planted(tmp_path)
    assert "Of 50 errors planted on 2026-11-17" in text and "catch 45, 95.7 %" in text
    assert "| `linear/theory` | 50 of 60 |" in text and "`lib/linear/theory.py:7`" in text
