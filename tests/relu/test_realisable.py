"""Which gates one ReLU unit can realise: linear programmes, nesting, and counting agree."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.relu import realisable


@pytest.mark.parametrize(("items", "contexts", "number"), [(2, 2, 14), (3, 2, 46), (2, 3, 46), (3, 3, 230)])
def test_programme_nesting_and_count_agree(items, contexts, number):
    gates = realisable.all_gates(items, contexts)
    nested = realisable.nested(gates)
    assert int(nested.sum()) == number == realisable.count(items, contexts)
    if items * contexts <= 6:
        assert [realisable.realisable(g) for g in gates] == nested.tolist()


def test_large_counts():
    assert int(realisable.nested(realisable.all_gates(4, 3)).sum()) == realisable.count(4, 3) == 1066
    assert realisable.count(8, 3) == realisable.count_chains(8) == 354106


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(0, 10**6))
def test_random_units_have_nested_gates(items, contexts, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(items, 1, generator=generator), torch.randn(1, contexts, generator=generator)
    assert realisable.nested(a + b > 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_nesting_is_what_the_programme_finds(items, contexts, seed):
    gate = torch.rand(items, contexts, generator=torch.Generator().manual_seed(seed)) > 0.5
    assert realisable.realisable(gate) == bool(realisable.nested(gate))


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


def test_stirling_numbers():
    assert [realisable.stirling2(5, k) for k in range(6)] == [0, 1, 15, 25, 10, 1]
