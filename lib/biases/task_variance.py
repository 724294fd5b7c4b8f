"""Which hidden units work for which task: task variances, their clusters, and units to compare specialists with.

A unit's task variance is the variance of its activity over a task's test images (`biases.unit_variance`); one vector per
unit with one entry per task. Williams et al., Fig. 1C and Appendices F and H.
"""

from bisect import bisect

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits
from torch import Tensor

CONTROLS = ("learned", "dealt", "Gaussian", "none")


def normalised(variance: Tensor) -> np.ndarray:
    """Vectors (units, tasks) of a (tasks, units) tensor, each divided by its own largest entry; silent units are zero."""
    vectors = variance.T.double().numpy()
    return vectors / np.maximum(vectors.max(1, keepdims=True), 1e-30)


def k_means(vectors: np.ndarray, k: int, seed: int = 0) -> KMeans:
    """K-means with a few restarts, on one thread: sums come out in the same order on every machine."""
    with threadpool_limits(1):
        return KMeans(k, n_init=3, random_state=seed).fit(vectors)


def specialised(profiles: np.ndarray, factor: float = 2.0) -> np.ndarray:
    """Which clusters (clusters, tasks) belong to one task: their largest entry is `factor` times the second largest or more."""
    ordered = np.sort(profiles, 1)
    return ordered[:, -1] >= factor * np.maximum(ordered[:, -2], 1e-30)


def main_task(variance: Tensor, factor: float = 2.0) -> Tensor:
    """The task of each single-task unit, (units,): its variance (tasks, units) there is `factor` times the next; else -1."""
    first, second = variance.double().topk(2, 0).values
    return torch.where((first >= factor * second) & (first > 0), variance.argmax(0), -1)


def single_task(variance: Tensor, factor: float = 2.0) -> float:
    """Fraction of units whose task variance (tasks, units) is positive, and for one task at least `factor` times the next."""
    return float((main_task(variance, factor) >= 0).double().mean())


def matched(values: Tensor, chosen: Tensor) -> Tensor:
    """As many other units as are `chosen`, boolean (units,) twice: for each in turn the nearest in `values` still free."""
    free = [(float(values[unit]), unit) for unit in (~chosen).nonzero()[:, 0].tolist()]
    free.sort()
    found = torch.zeros_like(chosen)
    for value in values[chosen].tolist():
        right = bisect(free, (value,))
        near = [k for k in (right - 1, right) if 0 <= k < len(free)]
        found[free.pop(min(near, key=lambda k: abs(free[k][0] - value)))[1]] = True
    return found


def control(bias: Tensor, kind: str, seed: int = 0) -> Tensor:
    """Biases (tasks, units) that only look like the learned ones, one of the CONTROLS.

    "dealt": each task's biases go to the units in another random order; "Gaussian": independent, with each task's mean and
    standard deviation; "none": zero. "learned" are the biases themselves.
    """
    generator = torch.Generator().manual_seed(seed)
    if kind == "dealt":
        orders = [torch.randperm(bias.shape[1], generator=generator) for _ in bias]
        return torch.stack([row[order.to(bias.device)] for row, order in zip(bias, orders, strict=True)])
    if kind == "Gaussian":
        drawn = torch.randn(bias.shape, generator=generator).to(bias)
        return bias.mean(1, keepdim=True) + bias.std(1, keepdim=True) * drawn
    if kind not in CONTROLS:
        raise ValueError(f"kind is one of {', '.join(CONTROLS)}, not {kind!r}")
    return torch.zeros_like(bias) if kind == "none" else bias


def rectified_variance(mean: Tensor, spread: Tensor) -> Tensor:
    """Variance of relu(h) for a Gaussian h of this mean and standard deviation: the null model of the task variance."""
    u = mean / spread
    normal = torch.distributions.Normal(torch.zeros_like(u), torch.ones_like(u))
    below, density = normal.cdf(u), normal.log_prob(u).exp()
    first = mean * below + spread * density
    second = (mean.square() + spread.square()) * below + mean * spread * density
    return (second - first.square()).clamp(min=0)


def correlation_over_tasks(variance: Tensor, bias: Tensor) -> Tensor:
    """Pearson correlation over tasks of a unit's task variance and bias, (tasks, units) twice -> (units,); NaN for constants."""
    a, b = (v.double() - v.double().mean(0) for v in (variance, bias))
    return (a * b).sum(0) / (a.square().sum(0) * b.square().sum(0)).sqrt()


def agreement(a: np.ndarray, b: np.ndarray) -> float:
    """Adjusted Rand index of two clusterings: 1 if they are the same, 0 on average by chance."""
    return float(adjusted_rand_score(a, b))
