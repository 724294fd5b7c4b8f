"""A fake GPU with real numbers: it finds, on a machine without CUDA, what a GPU would refuse.

Torch's own `meta` device has no numbers, so it stops at the first `.item()`; its fake CUDA tensors stop there, too. A tensor
on the device here is a `FakeGpuTensor`, which hides a CPU tensor that does the work. As with CUDA, an operation that takes a
tensor of the device and one of the CPU is an error (`WrongDevice`), unless the latter is a single number or an index; so is a
conversion to NumPy. Unlike with CUDA, drawing random numbers on the device is an error as well: networks are drawn on the CPU
and moved, which makes them the same everywhere, to the last bit. As the numbers are real, each result must be that of the CPU.

    with fake_gpu() as device: ...      in a test
    install(report)                     in a page's kernel, to its end
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
COPIES = (ATEN.copy_, ATEN._to_copy)
TAKES_INDEX = (ATEN.index, ATEN._unsafe_index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_)
RANDOM = ("rand", "normal", "uniform", "bernoulli", "multinomial", "exponential", "cauchy", "poisson", "native_dropout")

operations = [0]  # how many ran on the device


class WrongDevice(AssertionError):
    """What a GPU would refuse."""


class FakeGpuTensor(torch.Tensor):
    """A tensor on the device; `inner` has its numbers."""

    @staticmethod
    def __new__(cls, inner):
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), **layout, device=DEVICE)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"FakeGpuTensor({self.inner!r})"

    def __format__(self, how):
        return format(self.inner.detach(), how)

    def tolist(self):
        return self.inner.tolist()

    def numpy(self, *_, **__):
        raise WrongDevice("a tensor on the device becomes a NumPy array")

    __array__ = numpy

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func, args, kwargs):
    """One operation: on the device if it names it or has tensors there; what a GPU would refuse is refused."""
    operation, name, is_random = describe(func)
    tensors = []
    gather(args, tensors)
    gather(kwargs.values(), tensors)
    on_device = [tensor for tensor in tensors if isinstance(tensor, FakeGpuTensor)]
    named = kwargs.get("device")
    result_on_device = bool(on_device) if named is None else torch.device(named) == DEVICE
    if not on_device and not result_on_device:
        return func(*args, **kwargs)
    if result_on_device and is_random:
        raise WrongDevice(f"{name} draws on the device; draw on the CPU and move, so that networks are the same everywhere")
    if len(on_device) < len(tensors) and operation not in COPIES:
        refuse_mixture(operation, name, args, tensors)
    operations[0] += result_on_device
    known = {id(tensor.inner): tensor for tensor in on_device}
    kwargs = {key: unwrap(value) for key, value in kwargs.items()}
    if result_on_device and named is not None:
        kwargs["device"] = torch.device("cpu")
    made = func(*map(unwrap, args), **kwargs)
    if operation is ATEN.copy_:
        return known.get(id(made), made)
    if not result_on_device:
        return made

    def wrap(leaf):
        """A tensor that was there before (an operation in place) is itself, another one is new."""
        return known.get(id(leaf)) if id(leaf) in known else FakeGpuTensor(leaf)

    return tree_map(lambda leaf: wrap(leaf) if isinstance(leaf, torch.Tensor) else leaf, made)


def refuse_mixture(operation, name, args, tensors):
    """WrongDevice if one of the tensors was left on the CPU, where only an index or a single number may stay."""
    together = [args[0], *tree_leaves(args[2:])] if operation in TAKES_INDEX else tensors
    on_cpu = [one for one in together if isinstance(one, torch.Tensor) and not isinstance(one, FakeGpuTensor)]
    for tensor in on_cpu:
        if tensor.dim() or name in ("cat", "stack"):
            raise WrongDevice(f"{name}: a tensor of shape {tuple(tensor.shape)} was left behind on the CPU")


@functools.cache
def describe(func) -> tuple:
    """(operation, its name, whether it draws random numbers), looked up once: each operation asks."""
    name = func.overloadpacket._qualified_op_name.split("::")[1]
    return func.overloadpacket, name, name.startswith(RANDOM)


def gather(values, into: list) -> None:
    """All tensors among `values`, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            into.append(value)
        elif isinstance(value, list | tuple):
            gather(value, into)


def unwrap(value):
    """The CPU tensor that does the work of one on the device; everything else is itself."""
    if isinstance(value, FakeGpuTensor):
        return value.inner
    return type(value)(map(unwrap, value)) if type(value) in (list, tuple) else value


class Operations(TorchDispatchMode):
    """Sees the operations that have no tensor on the device yet: those that make one."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; torch would ask so at each operation."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


OPERATIONS = Operations()


class Calls(TorchFunctionMode):
    """Sees what is called from Python, and leaves alone what stays on the CPU: takes no tensor of the device, names no device.

    A function that is itself written in Python may do either inside, as a backward pass may, and is seen in full.
    torch.tensor([1, 2], device=…) fills its tensor before any operation is seen: fill it here, then move it.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        named = any(isinstance(value, FakeGpuTensor | str | torch.device) for value in (*args, *kwargs.values()))
        if not named and FakeGpuTensor not in types and type(func) is not FunctionType:
            return func(*args, **kwargs)
        with OPERATIONS:
            if func in (torch.tensor, torch.as_tensor, torch.asarray) and torch.device(kwargs.get("device") or "cpu") == DEVICE:
                del kwargs["device"]
                return func(*args, **kwargs).to(DEVICE)
            if func is torch.Tensor.new_tensor and isinstance(args[0], FakeGpuTensor):
                return torch.tensor(*args[1:], **({"dtype": args[0].dtype} | kwargs)).to(DEVICE)
            return func(*args, **kwargs)


@contextlib.contextmanager
def fake_gpu():
    """While this lasts, there is a device called `meta` that is not the CPU; optimisers have fused steps for it, as for CUDA.

    Precision stays as it is: mixed precision is not tried.
    """
    optimisers = importlib.import_module("torch.optim.optimizer")
    devices = [*optimisers._get_fused_kernels_supported_devices(), DEVICE.type]
    fused = unittest.mock.patch.object(optimisers, "_get_fused_kernels_supported_devices", lambda: devices)
    full = unittest.mock.patch.object(torch, "autocast", lambda *_, **__: contextlib.nullcontext())  # which knows real ones only
    with fused, full, Calls():
        yield DEVICE.type


def install(report: str) -> None:
    """In a page's kernel: the device is there to its end, when the number of its operations is written to `report`."""
    installed.enter_context(fake_gpu())
    atexit.register(lambda: Path(report).write_text(str(operations[0]), encoding="utf-8"))


installed = contextlib.ExitStack()  # what `install` has entered; it lasts as long as the interpreter
