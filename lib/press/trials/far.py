"""Another device, without one: a machine that refuses to mix with the CPU.

Torch's own `meta` device has no numbers, so it stops at the first `.item()`; its fake CUDA tensors stop there, too. The machine
here has numbers: a tensor on it is a `Far` one, which hides a CPU tensor that does the work. As with CUDA, an operation that
takes a far tensor and one of the CPU's is an error, unless the latter is a single number or an index; so is a conversion to
NumPy. Unlike with CUDA, drawing random numbers there is an error as well: networks are drawn on the CPU and moved, which makes
them the same everywhere, to the last bit. Because the numbers are real, each result must be that of the CPU.
"""

import atexit
import contextlib
import functools
import importlib
import unittest.mock
from pathlib import Path
from types import FunctionType

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")  # a name that torch knows; none of its own code for it is ever used
ATEN = torch.ops.aten
MOVES = (ATEN.copy_, ATEN._to_copy)
TAKES_INDEX = (ATEN.index, ATEN._unsafe_index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_)
CHANCE = ("rand", "normal", "uniform", "bernoulli", "multinomial", "exponential", "cauchy", "poisson", "native_dropout")


DONE = [0]  # operations that ran on the machine


class Stranded(AssertionError):
    """What a GPU would refuse."""


class Far(torch.Tensor):
    """A tensor on the machine; `inner` has its numbers."""

    @staticmethod
    def __new__(cls, inner):
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), **layout, device=DEVICE)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Far({self.inner!r})"

    def __format__(self, how):
        return format(self.inner.detach(), how)

    def tolist(self):
        return self.inner.tolist()

    def numpy(self, *_, **__):
        raise Stranded("a tensor on the device becomes a NumPy array")

    def __array__(self, *_, **__):
        raise Stranded("a tensor on the device becomes a NumPy array")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func, args, kwargs):
    """One operation: on the machine if it names it or has tensors there, and with what a GPU would refuse refused."""
    operation, name, draws = known(func)
    tensors = []
    gather(args, tensors)
    gather(kwargs.values(), tensors)
    far = [tensor for tensor in tensors if isinstance(tensor, Far)]
    named = kwargs.get("device")
    there = bool(far) if named is None else torch.device(named) == DEVICE
    if not far and not there:
        return func(*args, **kwargs)
    if there and draws:
        raise Stranded(f"{name} draws on the device; draw on the CPU and move, so that networks are the same everywhere")
    if len(far) < len(tensors) and operation not in MOVES:
        together = [args[0], *tree_leaves(args[2:])] if operation in TAKES_INDEX else tensors
        single = name not in ("cat", "stack")  # elsewhere a single number may stay on the CPU
        left = [t for t in together if isinstance(t, torch.Tensor) and not isinstance(t, Far) and (t.dim() or not single)]
        if left:
            raise Stranded(f"{name}: a tensor of shape {tuple(left[0].shape)} was left behind on the CPU")
    DONE[0] += there
    homes = {id(tensor.inner): tensor for tensor in far}
    kwargs = {key: inside(value) for key, value in kwargs.items()}
    if there and named is not None:
        kwargs["device"] = torch.device("cpu")
    made = func(*map(inside, args), **kwargs)
    if operation is ATEN.copy_:
        return homes.get(id(made), made)
    if not there:
        return made
    if isinstance(made, torch.Tensor):
        return homes.get(id(made)) if id(made) in homes else Far(made)
    return tree_map(lambda leaf: homes.get(id(leaf), Far(leaf)) if isinstance(leaf, torch.Tensor) else leaf, made)


@functools.cache
def known(func) -> tuple:
    """(operation, its name, whether it draws random numbers), looked up once: this stands in every operation's way."""
    name = func.overloadpacket._qualified_op_name.split("::")[1]
    return func.overloadpacket, name, name.startswith(CHANCE)


def gather(values, into: list) -> None:
    """All tensors among `values`, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            into.append(value)
        elif isinstance(value, list | tuple):
            gather(value, into)


def inside(value):
    """The CPU tensor that does the work of a far one; everything else is itself."""
    if isinstance(value, Far):
        return value.inner
    return type(value)(map(inside, value)) if type(value) in (list, tuple) else value


class Operations(TorchDispatchMode):
    """Sees the operations that have no far tensor yet: those that make one."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; torch would ask so at each operation."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


OPERATIONS = Operations()


class Calls(TorchFunctionMode):
    """Sees what is called from Python, and leaves alone what stays on the CPU: that takes no far tensor, and names no device.

    A function that is itself written in Python may do either inside, as a backward pass may, and is seen in full.
    torch.tensor([1, 2], device=…) fills its tensor before any operation is seen: fill it here, then move it.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        named = any(isinstance(value, Far | str | torch.device) for value in (*args, *kwargs.values()))
        if named or Far in types or type(func) is FunctionType:
            with OPERATIONS:
                return self.near(func, args, dict(kwargs))
        return func(*args, **kwargs)

    @staticmethod
    def near(func, args, kwargs):
        """A call that may have to do with the machine."""
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and torch.device(kwargs.get("device") or "cpu") == DEVICE:
            del kwargs["device"]
            return func(*args, **kwargs).to(DEVICE)
        if func is torch.Tensor.new_tensor and isinstance(args[0], Far):
            return torch.tensor(*args[1:], **({"dtype": args[0].dtype} | kwargs)).to(DEVICE)
        return func(*args, **kwargs)


@contextlib.contextmanager
def machine():
    """While this lasts, there is a device called `meta` that is not the CPU; optimisers have fused steps for it, as for CUDA.

    Precision stays as it is: mixed precision is not tried.
    """
    optimisers = importlib.import_module("torch.optim.optimizer")
    known = [*optimisers._get_fused_kernels_supported_devices(), DEVICE.type]
    fused = unittest.mock.patch.object(optimisers, "_get_fused_kernels_supported_devices", lambda: known)
    full = unittest.mock.patch.object(torch, "autocast", lambda *_, **__: contextlib.nullcontext())  # which knows real ones only
    with fused, full, Calls():
        yield "meta"


def inhabit(report: str) -> None:
    """Runs inside a page's kernel: the machine is there to its end, which writes to `report` how many operations ran on it."""
    stack = contextlib.ExitStack()
    stack.enter_context(machine())
    atexit.register(lambda: Path(report).write_text(str(DONE[0]), encoding="utf-8"))
    KEPT.append(stack)


KEPT: list = []  # what must last as long as the interpreter
