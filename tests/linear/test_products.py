"""Products into memory that is kept, against plain ones."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from lib.linear.products import Products, one_thread
from lib.press.trials.far import machine


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


SHAPES = {
    "one pair": ((4, 7), (7, 5)),
    "a batch": ((6, 24, 11), (6, 11, 35)),
    "two ensemble axes": ((2, 3, 4, 7), (2, 3, 7, 5)),
    "one matrix for all": ((4, 7), (3, 7, 5)),
    "shared along an axis": ((2, 1, 4, 7), (1, 3, 7, 5)),
    "a single inner number": ((3, 4, 1), (3, 1, 5)),
    "a single output": ((3, 4, 7), (3, 7, 1)),
    "a single row": ((3, 1, 7), (3, 7, 5)),
}


@pytest.mark.parametrize("dtype, rounding", [(torch.float64, 1e-13), (torch.float32, 1e-5)])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_a_product_is_the_plain_one(shapes, dtype, rounding):
    products = Products()
    for seed in (0, 1):  # the second time into the memory of the first
        a, b = (random(*shape, seed=seed + 10 * k, dtype=dtype) for k, shape in enumerate(shapes))
        turned = [m.mT.contiguous().mT for m in (a, b)]
        for pair in ((a, b), turned):
            found = products("same", *pair)
            assert found.dtype == dtype and found.is_contiguous()
            torch.testing.assert_close(found, torch.matmul(a, b), rtol=rounding, atol=rounding)


def test_parts_of_matrices_are_multiplied_as_they_lie():
    a, b = random(3, 6, 9), random(3, 9, 8, seed=1)
    found = Products()("part", a[..., 2:7], b[..., 2:7, 1:5])
    torch.testing.assert_close(found, a[..., 2:7] @ b[..., 2:7, 1:5], rtol=1e-13, atol=1e-13)


def test_each_name_and_shape_has_its_own_memory():
    products, a, b = Products(), random(2, 3, 4), random(2, 4, 5, seed=1)
    first, other, short = products("first", a, b), products("other", a, b), products("first", a[:1], b[:1])
    again = products("first", 2 * a, b)
    assert again is first and len({m.data_ptr() for m in (first, other, short)}) == 3
    torch.testing.assert_close(again, 2 * other)
    torch.testing.assert_close(short, other[:1])


def test_elsewhere_torch_multiplies(monkeypatch):
    monkeypatch.setattr(np, "matmul", None)  # NumPy cannot reach another device's memory
    a, b = random(2, 3, 4), random(2, 4, 5, seed=1)
    with machine() as device:
        products = Products()
        for factor in (1, 2):
            found = products("there", a.to(device) * factor, b.to(device))
            torch.testing.assert_close(found.cpu(), factor * a @ b)


def test_one_thread_is_one_thread_and_only_inside():
    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["internal_api"] == "openblas"]

    before = threads()
    with one_thread():
        assert set(threads()) <= {1}
    assert threads() == before
