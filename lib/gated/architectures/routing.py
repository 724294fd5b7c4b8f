"""The routing network of the neural race: M input domains, one shared hidden pathway, M output domains.

Each of the M² routes is a path of a gated network, and each example opens one. With the M encoders side by side and the M
decoders on top of each other the network is three matrices, and its map has one block per route, of which training observes
those in `mask`: all routes, seeds and masks train as one batched product.

Weights are a list [encoders (seeds, hidden, M · features), hidden (seeds, hidden, hidden), decoders (seeds, M · outputs,
hidden)]; a mask is (M, M) or (seeds, M, M) with rows for output domains and columns for input domains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from lib.gated.architectures.route_gradients import all_routes, few_routes
from lib.gated.network import Data, Network, one_per_seed
from lib.linear.descent import Recording, descend
from lib.linear.draws import Streams, random_matrix
from lib.linear.shapes import axes


@dataclass
class Task:
    """What linear pathways see of the data, in the basis in which every domain's inputs are uncorrelated."""

    yx: Tensor  # (domains, outputs, features) correlation of targets with the inputs of each domain
    variance: Tensor  # (domains, features) of the inputs
    yy: float  # mean squared length of a target, which all routes share

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(domains, outputs, features)."""
        return tuple(self.yx.shape)

    def to(self, dtype: torch.dtype | None = None, device: str | torch.device | None = None) -> "Task":
        """The same in another precision, or elsewhere."""
        return Task(self.yx.to(device, dtype), self.variance.to(device, dtype), self.yy)


@axes(x="features items", y="outputs items")
def shared_task(x: Tensor, y: Tensor, domains: int) -> Task:
    """The same dataset in every domain: x (features, items) with uncorrelated features, y (outputs, items)."""
    items = x.shape[-1]
    covariance = x @ x.mT / items
    if (covariance - torch.diag(covariance.diagonal())).abs().max() > 1e-9 * covariance.max():
        raise ValueError("the features are correlated: rotate x into the eigenvectors of its covariance first")
    yx = (y @ x.mT / items).expand(domains, -1, -1)
    return Task(yx, covariance.diagonal().expand(domains, -1), float((y**2).sum() / items))


def circulant(domains: int, trained: int) -> Tensor:
    """Input domain i is trained with the outputs i, i+1, …, i + trained - 1, cyclically: (M, M) (Neural Race, Fig. 4d)."""
    _check_number(trained, domains)
    return (torch.arange(domains)[:, None] - torch.arange(domains)) % domains < trained


def blocks(domains: int, number: int) -> Tensor:
    """`number` groups of domains, each trained completely within itself and never with another group."""
    _check_number(number, domains)
    group = torch.arange(domains) * number // domains
    return group[:, None] == group


def _check_number(number: int, domains: int) -> None:
    if not 1 <= number <= domains:
        raise ValueError(f"with {domains} domains this number must lie between 1 and {domains}, not {number}")


def star(domains: int) -> Tensor:
    """One input domain is trained with every output, and one output with every input: 2 M - 1 routes, all connected."""
    mask = torch.zeros(domains, domains, dtype=torch.bool)
    mask[0], mask[:, 0] = True, True
    return mask


def scattered(domains: int, trained: int, seed: int = 0) -> Tensor:
    """As many routes per domain as `circulant`, but drawn at random: the band, shuffled by swapping pairs of routes."""
    mask = circulant(domains, trained)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(20 * domains * trained):
        ways = mask.nonzero()
        (a, b), (c, d) = ways[torch.randint(len(ways), (2,), generator=generator)].tolist()
        if not mask[a, d] and not mask[c, b]:
            mask[a, b] = mask[c, d] = False
            mask[a, d] = mask[c, b] = True
    return mask


@axes(mask="domains domains")
def reachable(mask: Tensor) -> Tensor:
    """(M, M) True for the routes whose two ends are connected through trained routes: the data determine their maps."""
    domains = len(mask)
    table = np.zeros((2 * domains, 2 * domains))
    table[:domains, domains:] = mask.numpy()  # outputs against inputs
    _, part = connected_components(table, directed=False)
    return torch.as_tensor(part[:domains, None] == part[domains:])


@axes(mask="domains domains")
def rivalry(mask: Tensor) -> Tensor:
    """How closely the best solution that is not shared follows the shared one: second over first singular value of a mask.

    With equally many routes per domain the first pair of singular vectors is flat: one code for all domains. The next pair
    learns slower by this ratio; 1 means a tie. For `circulant` it tends to sin(πf)/(πf), f = K/M.
    """
    values = torch.linalg.svdvals(mask.double())
    return values[..., 1] / values[..., 0]


@axes(mask="domains domains")
def never_together(mask: Tensor) -> Tensor:
    """Pairs of different input domains that share no trained output, as a (pairs, 2) tensor of indices."""
    common = mask.double().mT @ mask.double()
    return (torch.triu(torch.ones_like(common), 1) * (common == 0)).nonzero()


def step_of_rate(rate: float | Tensor, task: Task, mask: Tensor) -> float | Tensor:
    """The `step` = 1/tau that does what learning rate λ = `rate` does in the paper's programs, for one mask or each of several.

    Their loss is the mean squared error over items *and outputs*, without the half, summed over trained routes: λ · routes · 2 /
    outputs.
    """
    routes = mask.sum((-2, -1))
    return rate * (int(routes) if mask.ndim == 2 else routes) * 2 / task.sizes[1]


def initial_weights(
    task: Task,
    hidden: int,
    scale: float | Tensor,
    seeds: int,
    seed: int = 0,
    law: str = "orthogonal",
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> list[Tensor]:
    """Random weights, every encoder and decoder drawn on its own as in a network of separate modules.

    `scale` is one number or one for each seed.
    """
    domains, outputs, features = task.sizes
    streams, inner, outer = Streams(seeds, seed), one_per_seed(scale, seeds), one_per_seed(scale, seeds, axes=3)
    encoders = random_matrix(streams.normal(domains, hidden, features), outer, law)
    middle = random_matrix(streams.normal(hidden, hidden), inner, law)
    decoders = random_matrix(streams.normal(domains, outputs, hidden), outer, law)
    encoders = encoders.transpose(1, 2).reshape(seeds, hidden, -1)
    return [w.to(device, dtype).contiguous() for w in (encoders, middle, decoders.reshape(seeds, -1, hidden))]


def decoupled_weights(task: Task, hidden: int, start: float, seed: int = 0) -> list[Tensor]:
    """Weights with singular values `start` for every mode, aligned with the data's singular vectors (Neural Race Eq. 9)."""
    domains = task.sizes[0]
    u, s, vt = torch.linalg.svd(task.yx[0].double(), full_matrices=False)
    first, second = random_matrix(Streams(1, seed).normal(2, hidden, s.numel())[0], 1.0, "orthogonal")
    weights = [start * (first @ vt).repeat(1, domains), start * second @ first.mT, start * (u @ second.mT).repeat(domains, 1)]
    return [w.unsqueeze(0) for w in weights]


@axes(mask="domains domains")
def train(
    weights: list[Tensor],
    task: Task,
    mask: Tensor,
    *,
    step: float | Tensor,
    steps: int,
    every: int = 10,
    momentum: float = 0.0,
    observe: Callable[[list[Tensor]], dict[str, Tensor]] | None = None,
) -> Recording:
    """Full-batch gradient descent of all seeds together, in place; `step` is 1/tau (`step_of_rate`), or one for each seed.

    Records `trained` and `untrained`, the mean loss over trained and over other routes (0 if there are none), (times,
    seeds), and what `observe(weights)` returns, all of it on the CPU.
    """
    mask = mask.to(weights[0].device)
    step = one_per_seed(step.to(weights[0])) if isinstance(step, Tensor) else step

    def look(w: list[Tensor]) -> dict[str, Tensor]:
        return trained_and_not(w, task, mask) | (observe(w) if observe else {})

    few = 2 * int(mask.sum(-2).max()) <= mask.shape[-1] and task.sizes[2] >= 16  # gathering decoders then costs less
    slope = (few_routes if few else all_routes)(task.yx, task.variance, mask, weights[0])
    run = descend(weights, slope, step=step, steps=steps, every=every, momentum=momentum, observe=look)
    return Recording(run.time, {name: value.cpu() for name, value in run.values.items()})


def trained_and_not(weights: Sequence[Tensor], task: Task, mask: Tensor) -> dict[str, Tensor]:
    """The mean losses over routes that are `trained` and `untrained`, (seeds,) each."""
    losses = route_losses(weights, task)
    return {"trained": over(losses, mask), "untrained": over(losses, ~mask)}


@axes(values="domains domains", mask="domains domains")
def over(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of values (..., M, M) over the routes in `mask`, (...,)."""
    mask = mask.to(values)
    return (values * mask).sum((-2, -1)) / mask.sum((-2, -1)).clamp(min=1)


def route_maps(weights: Sequence[Tensor], task: Task) -> Tensor:
    """The map of every route, (seeds, output domain, input domain, outputs, features)."""
    encoders, middle, decoders = weights
    domains, outputs, features = task.sizes
    total = decoders @ (middle @ encoders)
    return total.unflatten(-1, (domains, features)).unflatten(-3, (domains, outputs)).transpose(-3, -2)


def route_losses(weights: Sequence[Tensor], task: Task) -> Tensor:
    """Half the mean squared error of every route, (seeds, output domain, input domain) (Neural Race Eq. 1 by route)."""
    maps = route_maps(weights, task)
    yx, variance = task.yx.to(maps), task.variance.to(maps)
    cross = (maps * yx).sum((-2, -1))
    return 0.5 * task.yy - cross + 0.5 * (maps**2 * variance[:, None, :]).sum((-2, -1))


def singular_values(weights: Sequence[Tensor], task: Task) -> Tensor:
    """Leading singular values of encoders, hidden matrix and decoders, (seeds, 3, modes); outer ones averaged."""
    encoders, middle, decoders = weights
    domains, outputs, features = task.sizes
    number = min(outputs, features)
    outer = torch.linalg.svdvals(encoders.unflatten(-1, (domains, features)).transpose(-3, -2))[..., :number].mean(-2)
    last = torch.linalg.svdvals(decoders.unflatten(-2, (domains, outputs)))[..., :number].mean(-2)
    return torch.stack([outer, torch.linalg.svdvals(middle)[..., :number], last], -2)


def similarity(weights: Sequence[Tensor]) -> Tensor:
    """Inner products of the first hidden layer's codes, (seeds, M · features, M · features) (Neural Race, Fig. 4g)."""
    return weights[0].mT @ weights[0]


def domain_cosine(weights: Sequence[Tensor], task: Task) -> Tensor:
    """Cosine between the codes that two input domains give to the same item, mean over items: (seeds, M, M)."""
    domains, _, features = task.sizes
    codes = weights[0].unflatten(-1, (domains, features))
    codes = codes / codes.norm(dim=-3, keepdim=True)
    return torch.einsum("...hif,...hjf->...ij", codes, codes) / features


def domain_share(weights: Sequence[Tensor], task: Task) -> Tensor:
    """Squared distance of a code from its item's mean over domains, relative to that from the mean of all codes, (seeds,)."""
    domains, _, features = task.sizes
    codes = weights[0].unflatten(-1, (domains, features))  # (..., hidden, domains, features)
    within = ((codes - codes.mean(-2, keepdim=True)) ** 2).sum((-3, -2, -1))
    return within / ((codes - codes.mean((-2, -1), keepdim=True)) ** 2).sum((-3, -2, -1))


@axes(x="features items", y="outputs items", mask="domains domains")
def as_gated_network(x: Tensor, y: Tensor, mask: Tensor, hidden: int) -> tuple[Network, Data]:
    """The same network and data for the general engine: `Network`, `Data` with one example per trained route and item."""
    domains, items = len(mask), x.shape[-1]
    ways = mask.nonzero()  # (routes, 2): output domain, input domain
    sizes = {f"in{i}": x.shape[0] for i in range(domains)} | {"first": hidden, "second": hidden}
    sizes |= {f"out{j}": y.shape[0] for j in range(domains)}
    edges = [(f"in{i}", "first") for i in range(domains)] + [("first", "second")]
    edges += [("second", f"out{j}") for j in range(domains)]
    network = Network(sizes, edges)
    return network, _routed(network, x, y, *ways.repeat_interleave(items, 0).mT)


def _routed(network: Network, x: Tensor, y: Tensor, out: Tensor, into: Tensor) -> Data:
    """The items of x and y once for each route: example n goes in at domain into[n] and out at out[n]."""
    copies = len(into) // x.shape[-1]
    gates = {e.name: into == int(e.source[2:]) for e in network.edges.values() if e.source in network.inputs}
    gates |= {node: out == int(node[3:]) for node in network.outputs}
    every_x, every_y = x.repeat(1, copies), y.repeat(1, copies)
    return Data(dict.fromkeys(network.inputs, every_x), dict.fromkeys(network.outputs, every_y), gates)


@axes(x="features items", y="outputs items")
def sharing_network(x: Tensor, y: Tensor, domains: int, degrees: Sequence[int], hidden: int) -> tuple[Network, Data]:
    """Routing through separate hidden pathways, of which each serves a group of inputs and a group of outputs (Fig. 5a).

    `degrees` lists numbers of routes per pathway, squares of divisors of `domains`: (1,) is a pathway for each route, (1,
    domains²) has these beside one for all. All routes are trained. Returns Network, Data.
    """
    items, edges = x.shape[-1], []
    sizes = {f"in{i}": x.shape[0] for i in range(domains)}
    for shared in degrees:
        group = round(shared**0.5)
        if group**2 != shared or domains % group:
            raise ValueError(f"{shared} routes per pathway: this must be the square of a divisor of {domains}")
        for a in range(0, domains, group):
            for b in range(0, domains, group):
                first, second = f"first{shared}:{a},{b}", f"second{shared}:{a},{b}"
                sizes |= {first: hidden, second: hidden}
                edges += [(f"in{i}", first) for i in range(a, a + group)] + [(first, second)]
                edges += [(second, f"out{j}") for j in range(b, b + group)]
    sizes |= {f"out{j}": y.shape[0] for j in range(domains)}
    into = torch.arange(domains).repeat_interleave(domains).repeat_interleave(items)  # examples: every route, every item
    out = torch.arange(domains).repeat(domains).repeat_interleave(items)
    network = Network(sizes, edges)
    return network, _routed(network, x, y, out, into)
