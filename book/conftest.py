"""How nbval compares a page's new outputs with the committed ones, and the environment of its kernels.

Verdict cells are compared as text: claim, expectation, verdict. Measured numbers may differ in their last digits between
machines, so they are compared by value instead: within 5 %, or a quarter of the claim's own tolerance or bound, or of
the half-width of its interval over seeds.
"""

import os
import re
from pathlib import Path

from nbval import plugin

from lib import claims
from lib.book.execute import kernel_environment

SLACK = 0.05
os.environ.update(kernel_environment(Path(__file__).resolve().parent.parent))  # nbval's kernels inherit it


def agree(claim: claims.Claim, stored: dict, again: dict) -> bool:
    """Whether two records of a claim hold the same numbers for all that matters."""
    old, new = claims.parts(stored["measured"]), claims.parts(again["measured"])
    if set(old) != set(new):
        return False
    kind, low, high = claims.relation(claim)
    if kind == "true":
        return old == new
    width = (high - low) / 2 if kind in ("=", "in") else abs(high if kind == "<" else low)
    over = {part: (one["high"] - one["low"]) / 2 for part, one in claims.intervals(stored.get("interval")).items()}
    return all(abs(old[part] - new[part]) <= max(SLACK * abs(old[part]), width / 4, over.get(part, 0) / 4) for part in old)


def drift(test: list, reference: list) -> list[str]:
    """Claims of a cell whose stored number is no longer what the page measures, or that are missing on one side."""
    old, new = (claims.records({"cells": [{"outputs": outputs}]}) for outputs in (reference, test))
    if list(old) != list(new):
        return [f"claims differ: stored {list(old)}, measured {list(new)}"]
    known = {name: claim for paper in claims.papers() for name, claim in claims.load(paper).items()}
    return [
        f"{name}: stored {known[name].show(old[name]['measured'])}, measured {known[name].show(new[name]['measured'])}"
        for name in old
        if old[name]["verdict"] != new[name]["verdict"] or not agree(known[name], old[name], new[name])
    ]


def compare_outputs(self, test, ref, skip_compare=None):
    problems = drift(test, ref)
    if problems:
        self.comparison_traceback = problems
        return False
    # Numbers are done; what is left to compare as text is everything else in the row.
    ignored = (*self.parent.skip_compare, "text/html", "application/papermill.record/text/plain")
    return compare_as_text(self, test, ref, ignored)


def sanitize(self, s):
    clean = sanitize_text(self, s)
    return re.sub(r"ours .*? \| paper", "ours # | paper", clean) if isinstance(clean, str) else clean


compare_as_text, sanitize_text = plugin.IPyNbCell.compare_outputs, plugin.IPyNbCell.sanitize
plugin.IPyNbCell.compare_outputs, plugin.IPyNbCell.sanitize = compare_outputs, sanitize
