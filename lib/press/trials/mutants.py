"""Planted errors: do the unit tests feel a number that is wrong by one per cent?

`run` plants the errors of `planting` one at a time in a copy of the repository, and runs the unit tests of the module's room
that reach the edited line, those of its own test file first. An error is caught when a test fails, or takes three times as
long as without it. Tests that look at a clock do not judge. Errors that change no number are listed with a reason in
`tests/equivalent_mutants.yml` and counted apart.
"""

import json
import os
import queue
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from lib.press import files, pages
from lib.press.environment import ROOT
from lib.press.trials.planting import Mutant, PlantingError, chosen, find, modules, plant
from lib.press.trials.warm import Warm

EQUIVALENT = "tests/equivalent_mutants.yml"
RECORD = "book/mutants.json"
PATIENCE, COMPILING = 5, 30  # seconds that a round may take beyond three times what its tests took; more where code is compiled
ENOUGH = 0.95  # share of the errors that change a number, and are caught
COUNTS = ("possible", "planted", "caught", "stopped", "equivalent", "survived")


def equivalents(root: Path = ROOT) -> dict[tuple[str, str, str, str], str]:
    """{(module, function, line of source, mutation): why it changes no number}, from `tests/equivalent_mutants.yml`."""
    path = root / EQUIVALENT
    entries = files.read_yaml(path, PlantingError) if path.exists() else []
    try:
        return {(e["module"], e["function"], e["line"], e["mutation"]): e["reason"] for e in entries or []}
    except (KeyError, TypeError):
        raise PlantingError(f"every entry of {EQUIVALENT} has module, function, line, mutation and reason") from None


def name_of(mutant: Mutant) -> tuple[str, str, str, str]:
    """How a mutant is named in the list of equivalent ones."""
    return mutant.module, mutant.function, mutant.source, mutant.change


def drawn(mutants: dict[str, list[Mutant]], sample: int | None, seed: int) -> list[Mutant]:
    """`sample` mutants drawn at random, as evenly over the modules as their numbers allow; all without a sample."""
    shuffled = {module: random.Random(f"{seed} {module}").sample(found, len(found)) for module, found in mutants.items()}
    turn = sorted(((i, m) for found in shuffled.values() for i, m in enumerate(found)), key=lambda pair: pair[0])
    return [mutant for _, mutant in turn][:sample]


def run(
    names: Iterable[str] = (),
    *,
    sample: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    root: Path = ROOT,
    say: Callable[[str], None] = lambda text: None,
) -> dict:
    """Plant errors in the named modules (default: all) and judge them by the unit tests: the record that `table` shows.

    {"date", "seed", "sample", "seconds", "modules": {module: {"possible", "planted", "caught", of which "stopped" with an
    error that is no test's, "equivalent", "survived"}}, "survivors": [{"module", "line", "function", "kind", "before",
    "after", "reached"}], "red": tests that fail without any planted error and judge nothing}.
    """
    if not hasattr(os, "fork"):
        raise PlantingError("planting errors needs a system that can fork a process: Linux or macOS")
    begin, known = time.monotonic(), equivalents(root)
    texts = {name: (root / "lib" / f"{name}.py").read_text(encoding="utf-8") for name in chosen(list(names), root)}
    possible = {name: find(text, name) for name, text in texts.items()}
    todo = drawn(possible, sample, seed)
    counts = {name: dict.fromkeys(COUNTS, 0) | {"possible": len(found)} for name, found in possible.items()}
    survivors, fates = [], []

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        warm = [stack.enter_context(Warm(root, Path(folder))) for _ in range(jobs)]
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        idle = queue.SimpleQueue()
        for one in warm:
            idle.put(one)

        def somewhere(work: Callable, *arguments):
            one = idle.get()
            try:
                return work(one, *arguments)
            finally:
                idle.put(one)

        rooms = sorted({name.split("/")[0] for name in texts})
        say(f"{len(todo)} of {sum(map(len, possible.values()))} errors; first the tests of {', '.join(rooms)} without any")
        clean = dict(zip(rooms, pool.map(lambda room: somewhere(Warm.watch, [f"tests/{room}"]), rooms), strict=True))
        loaded = sorted({name for seen in clean.values() for name in seen["modules"]})
        list(pool.map(lambda one: one.load(loaded), warm))

        def fate(mutant: Mutant) -> str:
            if name_of(mutant) in known:
                return "equivalent"
            return somewhere(_judge, mutant, texts[mutant.module], clean[mutant.module.split("/")[0]]["tests"])

        for mutant, what in zip(todo, pool.map(fate, todo), strict=True):
            fates.append(what)
            count = counts[mutant.module]
            count["planted"] += 1
            count["stopped"] += what == "stopped"
            if what in ("survived", "unreached"):
                count["survived"] += 1
                survivors.append(_described(mutant, texts[mutant.module], reached=what == "survived"))
                say(f"  {_sentence(survivors[-1])}")
            else:
                count["equivalent" if what == "equivalent" else "caught"] += 1
            if len(fates) % 100 == 0:
                say(f"  … {len(fates)} of {len(todo)} after {time.monotonic() - begin:.0f} s")

    survivors.sort(key=lambda s: (list(texts).index(s["module"]), s["line"]))
    red = sorted(name for seen in clean.values() for name, test in seen["tests"].items() if not test["passed"])
    today = time.strftime("%Y-%m-%d", time.gmtime())
    for name, count in counts.items():
        count |= {"date": today, "code": code_of(name, root)}
    record = {"date": today, "seed": seed, "sample": sample}
    record |= {"seconds": round(time.monotonic() - begin), "modules": counts, "survivors": survivors, "red": red}
    return record


def _judge(warm: Warm, mutant: Mutant, text: str, tests: dict[str, dict]) -> str:
    """ "caught", "stopped" (caught, by an error that is no test's), "survived", or "unreached": no test runs its lines."""
    room, *_, module = mutant.module.split("/")
    path, lines = f"lib/{mutant.module}.py", set(range(mutant.line, mutant.last + 1))
    judges = {name: test for name, test in tests.items() if test["passed"] and not test["clock"]}
    reaching = [name for name, test in judges.items() if lines.intersection(test["lines"].get(path, ()))]
    compiled = "numba" in text
    if not reaching and compiled:  # what is compiled runs unseen
        reaching = [name for name, test in judges.items() if path in test["lines"]]
    if not reaching:
        return "unreached"

    def order(name: str) -> tuple[bool, float]:
        return not name.startswith(f"tests/{room}/test_{module}.py"), judges[name]["seconds"]

    # What is done once for many tests (a cached answer, say) is seen in the first of them only: a survivor meets all tests.
    for chosen_tests in (reaching, list(judges)):
        names = sorted(chosen_tests, key=order)
        limit = 3 * sum(judges[name]["seconds"] for name in names) + (COMPILING if compiled else PATIENCE)
        outcome = warm.judge({path: plant(text, mutant)}, names, limit, own_cache=compiled)["outcome"]
        if outcome != "passed":
            return "stopped" if outcome == "stopped" else "caught"
        if len(names) == len(judges):
            break
    return "survived"


def _described(mutant: Mutant, text: str, reached: bool) -> dict:
    line = text.encode().count(b"\n", 0, mutant.start) + 1
    what = {"module": mutant.module, "line": line, "function": mutant.function, "kind": mutant.kind}
    return what | {"before": mutant.before, "after": mutant.after, "source": mutant.source, "reached": reached}


def _sentence(survivor: dict) -> str:
    unseen = "" if survivor["reached"] else " (no test runs this line)"
    where = f"lib/{survivor['module']}.py:{survivor['line']} {survivor['function']}"
    return f"{where}: {survivor['before']} → {survivor['after']}{unseen}"


def share(count: dict) -> float:
    """Caught errors among those that change a number; 1 where there is none."""
    real = count["planted"] - count["equivalent"]
    return count["caught"] / real if real else 1.0


def total(record: dict) -> dict:
    """The counts of all modules together."""
    return {name: sum(count[name] for count in record["modules"].values()) for name in COUNTS}


def table(record: dict) -> str:
    """A record in Markdown: a row for each module, the sum, and the list of survivors."""
    heads = ["module", "planted", "caught", "of which stopped", "equivalent", "survived", "share caught"]
    rows = [*((f"`{name}`", count) for name, count in record["modules"].items()), ("all", total(record))]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for name, count in rows:
        planted = str(count["planted"]) + (f" of {count['possible']}" if count["planted"] < count["possible"] else "")
        cells = [name, planted, *(str(count[key]) for key in ("caught", "stopped", "equivalent", "survived"))]
        lines.append("| " + " | ".join([*cells, f"{share(count):.1%}".replace("%", " %") if count["planted"] else "–"]) + " |")
    if record["survivors"]:
        lines += ["", "Survivors:", ""]
    for s in record["survivors"]:
        unseen = "" if s["reached"] else " (no test runs this line)"
        lines.append(f"- `lib/{s['module']}.py:{s['line']}`, `{s['function']}`: `{s['before']}` → `{s['after']}`{unseen}")
    return "\n".join(lines) + "\n"


def joined(old: dict, new: dict, root: Path = ROOT) -> dict:
    """Two records as one: modules of the new run take the place of those of the old one, others stay; those that are gone go."""
    again = {name for name, count in new["modules"].items() if count["planted"] or name not in old["modules"]}
    counts = {name: new["modules"][name] if name in again else old["modules"].get(name) for name in modules(root)}
    survivors = [s for s in new["survivors"] if s["module"] in again]
    survivors += [s for s in old["survivors"] if s["module"] not in again and counts.get(s["module"])]
    survivors.sort(key=lambda s: (list(counts).index(s["module"]), s["line"]))
    return new | {"modules": {name: count for name, count in counts.items() if count}, "survivors": survivors}


def older(record: dict, root: Path = ROOT) -> list[str]:
    """Modules whose code is another one than the errors were planted in."""
    return [name for name, count in record["modules"].items() if count.get("code") != code_of(name, root)]


def code_of(module: str, root: Path = ROOT) -> str:
    """Changes when a module's code does, not its comments."""
    return pages.file_digest(root / "lib" / f"{module}.py")


def read(root: Path = ROOT) -> dict | None:
    """The recorded run, or None where there is none."""
    path = root / RECORD
    return files.read_json(path, PlantingError) if path.exists() else None


def write(record: dict, root: Path = ROOT) -> Path:
    """Keep a record with the book; what is recorded of modules that this run had nothing to do with stays."""
    path, before = root / RECORD, read(root)
    merged = joined(before, record, root) if before else record
    files.write_whole(path, json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
    return path
