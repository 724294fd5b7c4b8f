"""Which gates one ReLU unit can realise: linear programmes, nesting, and counting agree."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.data import tasks
from lib.linear import WrongAxes
from lib.relu import realisable


@pytest.mark.parametrize(("items", "contexts", "number"), [(2, 2, 14), (3, 2, 46), (2, 3, 46), (3, 3, 230)])
def test_programme_nesting_and_count_agree(items, contexts, number):
    gates = realisable.all_gates(items, contexts)
    nested = realisable.nested(gates)
    assert int(nested.sum()) == number == realisable.count(items, contexts)
    if items * contexts <= 6:
        assert [realisable.realisable(g) for g in gates] == nested.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(0, 10**6))
def test_random_units_have_nested_gates(items, contexts, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(items, 1, generator=generator), torch.randn(1, contexts, generator=generator)
    assert realisable.nested(a + b > 0)


def test_xor_is_the_only_impossible_gate_for_two_by_two():
    gates = realisable.all_gates(2, 2)
    impossible = gates[~realisable.nested(gates)]
    assert sorted(impossible.flatten(1).int().tolist()) == [[0, 1, 1, 0], [1, 0, 0, 1]]
    kinds = realisable.kinds(gates[realisable.nested(gates)])
    assert {n: int(k.sum()) for n, k in kinds.items()} == {
        "never": 1, "always": 1, "point": 4, "context": 2, "item": 2, "mixed": 4,
    }  # fmt: skip


def test_kinds_are_a_partition():
    kinds = realisable.kinds(realisable.all_gates(3, 3))
    assert (torch.stack(list(kinds.values())).sum(0) == 1).all()
    assert int(kinds["context"].sum()) == 6 and int(kinds["item"].sum()) == 6 and int(kinds["point"].sum()) == 9


def test_too_many_gates_are_refused():
    with pytest.raises(ValueError):
        realisable.all_gates(8, 3)
    with pytest.raises(WrongAxes, match="items, contexts"):
        realisable.nested(torch.ones(8).bool())


@pytest.mark.parametrize("size", [(2, 2), (3, 2), (3, 3), (4, 3)])
def test_every_realisable_gate_is_listed_once(size):
    gates = realisable.every(*size)
    assert len(gates) == realisable.count(*size) == len({tuple(g.flatten().tolist()) for g in gates})
    assert bool(realisable.nested(gates).all())


def test_symmetries_of_a_tree_leave_the_tree():
    rows = {tuple(row) for row in tasks.tree(8).tolist()}
    orders = realisable.tree_symmetries(8)
    assert orders.shape == (128, 8) and len({tuple(o) for o in orders.tolist()}) == 128
    assert all({tuple(row) for row in tasks.tree(8)[:, order].tolist()} == rows for order in orders)


def test_classes_of_gates_are_orbits():
    """Against a plain search: all images of each gate under leaves and contexts."""
    gates, orders = realisable.every(4, 2), realisable.tree_symmetries(4)
    classes, size = realisable.up_to_symmetry(gates, orders)

    def orbit(gate):
        images = [gate[o][:, list(c)] for o in orders for c in itertools.permutations(range(2))]
        return frozenset(tuple(image.flatten().tolist()) for image in images)

    plain = {orbit(gate) for gate in gates}
    assert {orbit(gate) for gate in classes} == plain and len(classes) == len(plain)
    assert sorted(size.tolist()) == sorted(len(o) for o in plain) and int(size.sum()) == len(gates)


def test_lists_that_would_be_too_long_are_refused():
    with pytest.raises(ValueError, match="too many"):
        realisable.every(12, 4)
    with pytest.raises(ValueError, match="2, 4, 8"):
        realisable.tree_symmetries(6)
