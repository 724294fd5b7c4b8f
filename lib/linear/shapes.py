"""Shapes of tensors, declared once with `@axes` at a public function and checked there.

    @axes(x="features items", y="outputs items")
    def correlations(x, y): ...

names the last axes of each argument; any number of ensemble axes may stand before them. NumPy arrays and nested lists
become tensors on the way in. What does not fit is answered in one sentence that names the axis.
"""

import functools
import inspect
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor


class WrongAxes(ValueError):
    """A tensor whose shape, precision or device does not fit; the message names the argument and the axis."""


def axes(**layout: str) -> Callable:
    """A decorator that checks the named arguments: axes with the same name must have the same length.

    A number in place of a name fixes an axis. Arguments that are None or not given are left alone. Floating-point
    arguments must share one precision, and all must be on one device.
    """
    wanted = {name: text.split() for name, text in layout.items()}

    def decorate(function: Callable) -> Callable:
        signature = inspect.signature(function)
        unknown = set(wanted) - set(signature.parameters)
        if unknown:
            raise TypeError(f"{function.__name__} has no argument {', '.join(sorted(unknown))}")

        @functools.wraps(function)
        def checked(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            for name in wanted:
                if isinstance(given.get(name), np.ndarray | list | tuple):
                    given[name] = torch.as_tensor(np.asarray(given[name]))
            check(function.__name__, {name: given[name] for name in wanted if given.get(name) is not None}, wanted)
            return function(*bound.args, **bound.kwargs)

        return checked

    return decorate


def check(caller: str, tensors: dict[str, Tensor], wanted: dict[str, list[str]]) -> None:
    """Raise `WrongAxes` at the first tensor that does not have the axes `wanted` of it."""
    seen: dict[str, tuple[int, str]] = {}  # axis -> its length, and the argument that brought it
    first: tuple[str, Tensor] | None = None
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise WrongAxes(f"{caller}: {name} must be a tensor or an array, not {type(tensor).__name__}")
        shape, names = tuple(tensor.shape), wanted[name]
        if len(shape) < len(names):
            raise WrongAxes(f"{caller}: {name} has shape {shape}; its last axes must be ({', '.join(names)})")
        for axis, length in zip(names, shape[len(shape) - len(names) :], strict=True):
            expected, other = (int(axis), "") if axis.isdecimal() else seen.setdefault(axis, (length, name))
            if length != expected:
                where = f"{other} has {expected}" if other else f"there must be {expected}"
                turned = len(names) == 2 and shape[-2:][::-1] == _lengths(name, names, shape, seen)
                hint = "; are rows and columns swapped?" if turned else ""
                what = f"an axis of {length}" if axis.isdecimal() else f"{length} {axis}"
                raise WrongAxes(f"{caller}: {name} has {what} (shape {shape} as ({', '.join(names)})), {where}{hint}")
        if tensor.is_floating_point():
            if first is not None and tensor.dtype != first[1].dtype:
                raise WrongAxes(
                    f"{caller}: {name} is {_precision(tensor)} and {first[0]} is {_precision(first[1])}; "
                    f"bring them to one precision, for example with {name}.to({first[0]}.dtype)"
                )
            first = first or (name, tensor)
        if first is not None and tensor.device != first[1].device:
            raise WrongAxes(f"{caller}: {name} is on {tensor.device} and {first[0]} on {first[1].device}; move one of them")


def check_chain(caller: str, weights: Sequence[Tensor], **data: tuple[str, Tensor]) -> list[Tensor]:
    """The matrices of a chain as tensors, each (..., out, in); `data`, such as x=("features items", x), must fit to it."""
    if isinstance(weights, Tensor | np.ndarray | dict) or len(weights) == 0:
        raise WrongAxes(f"{caller}: weights must be a list of matrices from input to output, not {type(weights).__name__}")
    chain = [torch.as_tensor(w) for w in weights]
    units = ["features", *(f"units of layer {i}" for i in range(1, len(chain))), "outputs"]
    wanted = {f"weights[{i}]": [units[i + 1], units[i]] for i in range(len(chain))}
    given = dict(zip(wanted, chain, strict=True)) | {name: tensor for name, (_, tensor) in data.items()}
    check(caller, given, wanted | {name: layout.split() for name, (layout, _) in data.items()})
    if not all(w.is_floating_point() for w in chain):
        raise WrongAxes(f"{caller}: weights must be real numbers, not {', '.join(sorted({_precision(w) for w in chain}))}")
    try:
        np.broadcast_shapes(*(w.shape[:-2] for w in chain))  # torch's own loads its compiler
    except ValueError:
        shapes = ", ".join(str(tuple(w.shape)) for w in chain)
        raise WrongAxes(f"{caller}: the ensembles of the weights differ, their shapes are {shapes}") from None
    return chain


def as_array(tensor: Tensor) -> np.ndarray | Tensor:
    """The same memory for NumPy, which begins a small product in a third of torch's time; on other devices the tensor itself."""
    return tensor.detach().numpy() if tensor.device.type == "cpu" else tensor.detach()


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for many small matrices (..., rows, inner) and (..., inner, columns), by NumPy on the processor; no autograd."""
    return torch.as_tensor(as_array(a) @ as_array(b))


def reals(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors of whole numbers or truth values in the precision of the real ones among them, or else in double precision."""
    precision = next((t.dtype for t in tensors if t.is_floating_point()), torch.float64)
    return tuple(t if t.is_floating_point() else t.to(precision) for t in tensors)


def _lengths(name: str, names: list[str], shape: tuple[int, ...], seen: dict[str, tuple[int, str]]) -> tuple[int, ...]:
    """The lengths that the other arguments give to these axes; where they say nothing, those that a turned tensor has."""
    told = [seen.get(axis, (0, name)) for axis in names]
    return tuple(t if by == name else length for (length, by), t in zip(told, shape[-2:][::-1], strict=True))


def _precision(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
