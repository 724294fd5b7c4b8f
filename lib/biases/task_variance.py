"""Which hidden units work for which task: task variances, their clusters, and how many clusters there are.

A unit's task variance is the variance of its activity over a task's test images (`biases.unit_variance`); one vector per
unit with one entry per task. Williams et al., Fig. 1C and Appendices F and H, choose the number of clusters "by
cross-validation" without saying how, so three rules are here.
"""

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from threadpoolctl import threadpool_limits
from torch import Tensor

RULES = ("held-out gain", "prediction strength", "silhouette")
CONTROLS = ("learned", "dealt", "Gaussian", "none")


def normalised(variance: Tensor) -> np.ndarray:
    """Vectors (units, tasks) of a (tasks, units) tensor, each divided by its own largest entry; silent units are zero."""
    vectors = variance.T.double().numpy()
    return vectors / np.maximum(vectors.max(1, keepdims=True), 1e-30)


def k_means(vectors: np.ndarray, k: int, seed: int = 0) -> KMeans:
    """K-means with a few restarts, on one thread: sums come out in the same order on every machine."""
    with threadpool_limits(1):
        return KMeans(k, n_init=3, random_state=seed).fit(vectors)


def number_of_clusters(vectors: np.ndarray, rule: str, largest: int = 16, seed: int = 0, sample: int = 3000) -> int:
    """K by one of the RULES, from a random sample of the units.

    "held-out gain": K-means on half of the units; the largest K before which the other half's summed squared distance to the
    nearest centre fell by at least 2 % of its total (K = 1). "prediction strength": the largest K at which pairs of one half that
    share a cluster also share one under the other half's centres, for at least 80 % of pairs in the worst cluster. "silhouette":
    the K with the largest mean silhouette.
    """
    order = np.random.RandomState(seed).permutation(len(vectors))[:sample]
    left, right = vectors[order[::2]], vectors[order[1::2]]
    if rule == "held-out gain":
        costs = [-k_means(left, k, seed).score(right) for k in range(1, largest + 1)]
        gains = -np.diff(costs) / costs[0]
        enough = gains >= 0.02
        return int(len(enough) + 1 if enough.all() else enough.argmin() + 1)
    if rule == "prediction strength":
        best = 1
        for k in range(2, largest + 1):
            own, other = k_means(right, k, seed).labels_, k_means(left, k, seed).predict(right)
            strength = min(_pairs_kept(other[own == c]) for c in range(k))
            best = k if strength >= 0.8 else best
        return best
    if rule == "silhouette":
        few = vectors[order[:1500]]  # its cost is quadratic
        scores = [silhouette_score(few, k_means(few, k, seed).labels_) for k in range(2, largest + 1)]
        return 2 + int(np.argmax(scores))
    raise ValueError(f"rule is one of {', '.join(RULES)}, not {rule!r}")


def specialised(profiles: np.ndarray, factor: float = 2.0) -> np.ndarray:
    """Which clusters (clusters, tasks) belong to one task: their largest entry is `factor` times the second largest or more."""
    ordered = np.sort(profiles, 1)
    return ordered[:, -1] >= factor * np.maximum(ordered[:, -2], 1e-30)


def single_task(variance: Tensor, factor: float = 2.0) -> float:
    """Fraction of units whose task variance (tasks, units) is positive, and for one task at least `factor` times the next."""
    first, second = variance.double().topk(2, 0).values
    return float(((first >= factor * second) & (first > 0)).double().mean())


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


def _pairs_kept(labels: np.ndarray) -> float:
    """Share of pairs that have the same label; 0 for fewer than two members, which predict nothing."""
    n = len(labels)
    if n < 2:
        return 0.0
    counts = np.bincount(labels)
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))
