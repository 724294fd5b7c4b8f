"""Which gates can one ReLU unit realise when its input is a one-hot item and a one-hot context?

Such a unit has one weight a_i per item and one weight b_c per context and is on where a_i + b_c > 0. A gate is a boolean
table (items, contexts). Make Haste Slowly, Lemma 4.1 and Appendix D, claims that only gates by context alone or for a
single data point are possible; here the question is answered by linear programmes and by counting.
"""

import math

import torch
from scipy.optimize import linprog
from torch import Tensor

from lib.linear import axes


@axes(gate="items contexts")
def realisable(gate: Tensor) -> bool:
    """Whether some weights a_i + b_c are positive exactly where `gate` (items, contexts) is open: a linear programme."""
    items, contexts = gate.shape
    weights = torch.cat([torch.eye(items).repeat_interleave(contexts, 0), torch.eye(contexts).repeat(items, 1)], 1)
    sign = torch.where(gate.bool().flatten(), -1.0, 1.0)[:, None]
    bound = torch.where(gate.bool().flatten(), -1.0, 0.0)  # open: a + b >= 1 (any scale will do); shut: a + b <= 0
    return linprog(torch.zeros(items + contexts), A_ub=sign * weights, b_ub=bound, bounds=(None, None)).status == 0


@axes(gates="items contexts")
def nested(gates: Tensor) -> Tensor:
    """The same answer without a programme, gates (..., items, contexts) -> (...): the contexts' item sets must form a chain.

    In context c the unit is on for the items with a_i > -b_c, so lowering the bar can only add items.
    """
    contexts, gates = gates.shape[-1], gates.bool()
    answer = torch.ones(gates.shape[:-2], dtype=torch.bool, device=gates.device)
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


def every(items: int, contexts: int) -> Tensor:
    """All realisable gates, (count(items, contexts), items, contexts), boolean: one nested set of items after another."""
    if items > 12 or count(items, contexts) > 5_000_000:
        raise ValueError(f"{count(items, contexts)} gates of {items} items and {contexts} contexts are too many to list")
    sets = torch.arange(2**items)
    nested = ((sets[:, None] & sets) == sets) | ((sets[:, None] & sets) == sets[:, None])  # (first, second)
    chosen = sets[:, None]  # (gates, contexts so far)
    for _ in range(contexts - 1):
        fits = nested[chosen].all(1)  # (gates, next set)
        row, new = fits.nonzero(as_tuple=True)
        chosen = torch.cat([chosen[row], sets[new, None]], 1)
    return ((chosen[:, None, :] >> torch.arange(items)[:, None]) & 1).bool()


def tree_symmetries(items: int) -> Tensor:
    """All ways to renumber the leaves of a binary tree that leave it the same tree: (2^(items - 1), items), int64."""
    orders = torch.zeros(1, 1, dtype=torch.int64)
    while orders.shape[1] < items:
        size = orders.shape[1]
        left, right = torch.cartesian_prod(torch.arange(len(orders)), torch.arange(len(orders))).T
        pair = torch.cat([orders[left], orders[right] + size], 1)
        orders = torch.cat([pair, pair.roll(size, 1)])
    if orders.shape[1] != items:
        raise ValueError(f"a binary tree has 2, 4, 8, … leaves, not {items}")
    return orders


@axes(gates="items contexts", symmetries="number items")
def up_to_symmetry(gates: Tensor, symmetries: Tensor) -> tuple[Tensor, Tensor]:
    """One gate of every class (classes, items, contexts), and the size of the class.

    Two gates are of one class if a renumbering of the items (`symmetries`, a group) and any one of the contexts turns one into
    the other. Where the data have these symmetries, all gates of a class learn alike.
    """
    items, contexts = gates.shape[-2:]
    place, base = 2 ** torch.arange(items), (2**items) ** torch.arange(contexts)
    as_sets = (gates.long() * place[:, None]).sum(-2).sort(-1).values  # (gates, contexts): the order of contexts is forgotten
    _, index, number = (as_sets * base).sum(-1).unique(return_inverse=True, return_counts=True)
    first = torch.full((len(number),), len(gates)).scatter_reduce(0, index, torch.arange(len(gates)), "amin")
    sets, least = as_sets[first], None
    members = ((torch.arange(2**items)[:, None] >> torch.arange(items)) & 1).long()  # (sets, items)
    for order in symmetries:
        moved = (members[:, order] * place).sum(-1)  # what each set becomes
        code = (moved[sets].sort(-1).values * base).sum(-1)
        least = code if least is None else least.minimum(code)
    classes, index = least.unique(return_inverse=True)
    size = torch.zeros(len(classes), dtype=torch.int64).index_add(0, index, number)
    earliest = torch.full((len(classes),), len(gates)).scatter_reduce(0, index, first, "amin")
    return gates[earliest], size


def count(items: int, contexts: int) -> int:
    """Number of realisable gates: the poly-Bernoulli number sum_j (j!)² S(items + 1, j + 1) S(contexts + 1, j + 1)."""
    terms = range(min(items, contexts) + 1)
    return sum(math.factorial(j) ** 2 * stirling2(items + 1, j + 1) * stirling2(contexts + 1, j + 1) for j in terms)


@axes(gates="items contexts")
def kinds(gates: Tensor) -> dict[str, Tensor]:
    """On what a gate (..., items, contexts) depends, boolean (...) each; every gate has exactly one kind.

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
