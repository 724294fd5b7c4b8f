"""Which gates can one ReLU unit realise when its input is a one-hot item and a one-hot context?

Such a unit has one weight a_i per item and one weight b_c per context and is on where a_i + b_c > 0. A gate is a boolean
table (items, contexts). Make Haste Slowly, Lemma 4.1 and Appendix D, claims that only gates by context alone or for a
single data point are possible; here the question is answered by linear programmes and by counting.
"""

import math
from itertools import product

import torch
from scipy.optimize import linprog
from torch import Tensor


def realisable(gate: Tensor) -> bool:
    """Whether some weights a_i + b_c are positive exactly where `gate` (items, contexts) is open: a linear programme."""
    items, contexts = gate.shape
    rows, bounds = [], []
    for i, c in product(range(items), range(contexts)):
        row = [0.0] * (items + contexts)
        sign = -1.0 if gate[i, c] else 1.0
        row[i] = row[items + c] = sign
        rows.append(row)
        bounds.append(-1.0 if gate[i, c] else 0.0)  # open: a + b >= 1 (any scale will do); shut: a + b <= 0
    return linprog([0.0] * (items + contexts), A_ub=rows, b_ub=bounds, bounds=(None, None)).status == 0


def nested(gates: Tensor) -> Tensor:
    """The same answer without a programme: a gate is realisable iff its contexts' item sets form a chain.

    In context c the unit is on for the items with a_i > -b_c, so lowering the bar can only add items: of any two
    contexts one set contains the other. gates (..., items, contexts) -> (...). Equivalently, no XOR hides in the table.
    """
    contexts = gates.shape[-1]
    answer = torch.ones(gates.shape[:-2], dtype=torch.bool)
    for c in range(contexts):
        for k in range(c):
            first, second = gates[..., c], gates[..., k]
            answer &= ~((first & ~second).any(-1) & (second & ~first).any(-1))
    return answer


def all_gates(items: int, contexts: int) -> Tensor:
    """Every boolean table, (2^(items · contexts), items, contexts): small cases only."""
    cells = items * contexts
    if cells > 20:
        raise ValueError(f"2^{cells} tables are too many to list; use count()")
    codes = torch.arange(2**cells)
    return ((codes[:, None] >> torch.arange(cells)) & 1).bool().unflatten(1, (items, contexts))


def count(items: int, contexts: int) -> int:
    """Number of realisable gates: the poly-Bernoulli number sum_j (j!)² S(items + 1, j + 1) S(contexts + 1, j + 1)."""
    terms = range(min(items, contexts) + 1)
    return sum(math.factorial(j) ** 2 * stirling2(items + 1, j + 1) * stirling2(contexts + 1, j + 1) for j in terms)


def count_chains(items: int) -> int:
    """The same number for three contexts by sheer counting: triples of item sets, any two of them nested."""
    sets = torch.arange(2**items)
    meet = sets[:, None] & sets[None, :]
    comparable = ((meet == sets[:, None]) | (meet == sets[None, :])).double()
    return int((comparable * (comparable @ comparable)).sum())


def kinds(gates: Tensor) -> dict[str, Tensor]:
    """What a gate (..., items, contexts) listens to, boolean (...) each; every gate has exactly one kind.

    never · always · context (only the context matters) · item (only the item matters) · point (one data point) · mixed.
    """
    on = gates.sum((-2, -1))
    by_context = (gates == gates[..., :1, :]).flatten(-2).all(-1)
    by_item = (gates == gates[..., :, :1]).flatten(-2).all(-1)
    never, always, point = on == 0, on == gates.shape[-1] * gates.shape[-2], on == 1
    plain = never | always | point
    result = {"never": never, "always": always, "point": point}
    result["context"], result["item"] = by_context & ~plain, by_item & ~plain
    return result | {"mixed": ~(plain | by_context | by_item)}


def stirling2(n: int, k: int) -> int:
    """Ways to split n things into k groups (Stirling numbers of the second kind)."""
    return sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)
