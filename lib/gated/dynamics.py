"""How gated networks learn: gradient flow, gradient descent, and what the flow conserves (Neural Race, Section 2)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from lib.gated.engine import Statistics, Weights, check_weights, gradient, loss, loss_of_statistics, node_gradient
from lib.gated.network import Data, Network, one_per_seed
from lib.linear.descent import Recording, descend


def flow(
    network: Network,
    weights: Weights,
    source: Statistics | Data,
    times: Sequence[float] | Tensor,
    tau: float = 1.0,
    rtol: float = 1e-11,
) -> Weights:
    """Weights under gradient flow tau dW/dt = -dL/dW at `times`, dict of (times, ..., rows, columns) (Neural Race Eq. 2).

    `source` is the `Statistics` of the effective datasets, or the `Data` themselves: the same flow, faster on graphs with
    more paths than edges. Runge-Kutta of order 8 to relative precision `rtol`, the whole ensemble as one system.
    """
    names, shapes = list(network.edges), [weights[name].shape for name in network.edges]
    lengths = [math.prod(shape) for shape in shapes]

    def unpack(flat: np.ndarray) -> Weights:
        parts = torch.as_tensor(flat).split(lengths, dim=-1)
        return {n: part.reshape(*part.shape[:-1], *s) for n, part, s in zip(names, parts, shapes, strict=True)}

    start = torch.cat([weights[name].reshape(-1) for name in names]).double().numpy()
    slope = _gradient_on(network, unpack(start), source)

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        uphill = slope(unpack(flat))
        return torch.cat([uphill[name].reshape(-1) for name in names]).numpy() / -tau

    return unpack(integrate(velocity, start, times, rtol))


def _gradient_on(network: Network, weights: Weights, source: Statistics | Data) -> Callable[[Weights], Weights]:
    """The gradient as a function of the weights: by paths from `Statistics`, through the nodes from `Data`."""
    check_weights(network, weights, source if isinstance(source, Data) else None)
    if isinstance(source, Data):
        return node_gradient(network, source)
    return partial(gradient, network, statistics=source)


def integrate(velocity: Callable, start: np.ndarray, times: Sequence[float] | Tensor, rtol: float = 1e-11) -> np.ndarray:
    """Solution of the differential equation d start / dt = velocity(t, start) at `times`, (times, ...)."""
    times = np.asarray(times, dtype=float)
    if start.size == 0:  # nothing moves
        return np.empty((len(times), 0))
    # the absolute tolerance lies far below the smallest starting weights, which decide when learning sets in
    solution = solve_ivp(velocity, (0.0, times[-1]), start, "DOP853", times, rtol=rtol, atol=rtol * 1e-4)
    if not solution.success:
        raise RuntimeError(f"the integration stopped at time {solution.t[-1]:.4g}: {solution.message}")
    return solution.y.T.copy()


def train(
    network: Network,
    weights: Weights,
    source: Statistics | Data,
    *,
    step: float | Tensor,
    steps: int,
    every: int = 1,
    momentum: float = 0.0,
    observe: Callable[[Weights], dict[str, Tensor]] | None = None,
) -> Recording:
    """Full-batch gradient descent in place: `flow` with a finite step of size `step` = 1/tau, one number or one per seed.

    `source` is the `Statistics` of the effective datasets or the `Data`: the same steps, by paths or through the nodes.
    Records "loss" (times, ...) and what `observe(weights)` returns.
    """
    value = loss if isinstance(source, Data) else loss_of_statistics
    step = one_per_seed(step).to(next(iter(weights.values()))) if isinstance(step, Tensor) else step

    def look(w: Weights) -> dict[str, Tensor]:
        seen = {"loss": value(network, w, source)}
        return seen | observe(w) if observe else seen

    slope = _gradient_on(network, weights, source)
    return descend(weights, slope, step=step, steps=steps, every=every, momentum=momentum, observe=look)


def balance(network: Network, weights: Weights) -> dict[str, Tensor]:
    """Σ_in W Wᵀ - Σ_out Wᵀ W at every hidden node, dict of (..., size, size).

    Constant under gradient flow for every graph, gating, dataset and start: whatever drifts is the error of the
    integration. It generalises the conserved M B1² - B2² of Neural Race, Section 4.
    """
    law = {}
    for node in network.hidden:
        into = sum(weights[edge.name] @ weights[edge.name].mT for edge in network.incoming[node])
        law[node] = into - sum(weights[edge.name].mT @ weights[edge.name] for edge in network.outgoing[node])
    return law


def balance_drift(network: Network, start: Weights, end: Weights) -> float:
    """Largest change of the conserved `balance` between two sets of weights, relative to the weights' largest square."""
    before, after = balance(network, start), balance(network, end)
    if not before:
        raise ValueError("the network has no hidden node, so nothing is conserved")
    size = max((weight**2).sum((-2, -1)).max() for weight in (*start.values(), *end.values()))
    return float(max((after[node] - before[node]).abs().max() for node in before) / size)
