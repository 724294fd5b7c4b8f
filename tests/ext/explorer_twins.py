"""What the explorers' scripts should compute, from `lib`: for each explorer some settings, and a function of one of them.

A setting is what the script's `compute` takes; the function returns what it should return, or a part of that. Networks are drawn
from numbers that a browser draws as well, so that `lib` gets the very network that a reader sees.
"""

import math

import numpy as np
import torch
from explorers.functions import SIDE
from explorers.routing import DOMAINS

from lib import biases, complexity, linear, relu
from lib.data import tasks
from lib.gated.architectures import closed_forms, rivals, routing
from lib.redshift import random_networks
from lib.relu import contexts, linearization, separability

# --- random numbers: `E.generator` in numbers.js -----------------------------------------------------------------------

STRIDE = np.uint32(0x6D2B79F5)


def uniforms(seed: int, count: int, skip: int = 0) -> np.ndarray:
    """The first `count` numbers in [0, 1) of a generator, after `skip` others; (count,), float64.

    A counter that grows by an odd constant, hashed to 32 bits. It need not be good for more than pictures.
    """
    with np.errstate(over="ignore"):
        counter = np.uint32(seed) + STRIDE * np.arange(1 + skip, 1 + skip + count, dtype=np.uint32)
        h = (counter ^ (counter >> 15)) * (counter | np.uint32(1))
        h ^= h + (h ^ (h >> 7)) * (h | np.uint32(61))
        h ^= h >> 14
    return h / 2.0**32


def normals(seed: int, count: int) -> np.ndarray:
    """The first `count` standard normal numbers of a generator, two from each pair of uniform ones; (count,), float64."""
    pairs = uniforms(seed, 2 * ((count + 1) // 2)).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - pairs[:, 0])), 2 * np.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count]


def network(seed: int, features: int, hidden: int, outputs: int, std: float) -> list[torch.Tensor]:
    """The weights of a network with one hidden layer that a browser draws: `N.draw` in networks.js."""
    numbers = std * torch.from_numpy(normals(seed, hidden * (features + outputs)))
    first, second = numbers.split([hidden * features, hidden * outputs])
    return [first.reshape(hidden, features).clone(), second.reshape(outputs, hidden).clone()]


# --- modes -------------------------------------------------------------------------------------------------------------

MODES = [
    {"s": [1.5, 0.8, 0.4], "a0": 1e-4, "layers": 2, "times": [0.0, 1.0, 3.0, 8.0, 20.0]},
    {"s": [2.0, 1.1, 0.2], "a0": 1e-6, "layers": 3, "times": [0.0, 5.0, 40.0, 200.0, 900.0]},
    {"s": [0.9, 0.9, 0.5], "a0": 0.1, "layers": 1, "times": [0.0, 0.5, 1.5, 4.0]},
    {"s": [3.0, 0.7, 0.25], "a0": 0.01, "layers": 6, "times": [0.0, 1.0, 10.0, 60.0]},
]


def expected_modes(setting: dict) -> dict:
    """Strengths (modes, times) and loss (times) from `linear.mode_strength`, `deep_mode_strength` and `loss_of_modes`."""
    times, s = torch.tensor(setting["times"], dtype=torch.float64), torch.tensor(setting["s"], dtype=torch.float64)
    if setting["layers"] == 2:
        strengths = linear.mode_strength(times, s[:, None], 1.0, setting["a0"])
    else:
        each = [linear.deep_mode_strength(times, float(one), 1.0, setting["a0"], setting["layers"]) for one in s]
        strengths = torch.stack(each)
    return {"strengths": strengths, "loss": linear.loss_of_modes(strengths.T, s, torch.ones(3).double(), (s**2).sum())}


# --- routing -----------------------------------------------------------------------------------------------------------

ROUTING = [
    {"mask": routing.circulant(DOMAINS, 3).flatten().tolist(), "scale": 0.2, "seed": 1, "steps": 150},
    {"mask": routing.circulant(DOMAINS, 2).flatten().tolist(), "scale": 0.5, "seed": 2, "steps": 60},
    {"mask": routing.star(DOMAINS).flatten().tolist(), "scale": 0.3, "seed": 3, "steps": 40},
    {"mask": routing.blocks(DOMAINS, 2).flatten().tolist(), "scale": 1.2, "seed": 4, "steps": 25},
]
ROUTING_HIDDEN, ROUTING_RATE, LARGEST = 32, 0.03, 0.16  # a larger step is unstable when all routes are trained


def task() -> routing.Task:
    """The page's data set: four items, seven properties in a tree."""
    return routing.shared_task(*tasks.routing_items((6.0, 4.0, 3.0)), DOMAINS)


def weights_of_routes(scale: float, seed: int) -> list[torch.Tensor]:
    """The weights that a browser draws: `R.draw` in routing.js."""
    hidden, (_, outputs, features) = ROUTING_HIDDEN, task().sizes
    numbers = torch.from_numpy(normals(seed, DOMAINS * hidden * (features + outputs) + hidden**2))
    ends = [DOMAINS * hidden * features, hidden**2, DOMAINS * hidden * outputs]
    encoders, middle, decoders = numbers.split(ends)
    encoders = linear.random_matrix(encoders.reshape(DOMAINS, hidden, features), scale, "orthogonal")
    decoders = linear.random_matrix(decoders.reshape(DOMAINS, outputs, hidden), scale, "orthogonal")
    middle = linear.random_matrix(middle.reshape(hidden, hidden), scale, "orthogonal")
    return [encoders.transpose(0, 1).reshape(1, hidden, -1).contiguous(), middle[None], decoders.reshape(1, -1, hidden)]


def expected_routing(setting: dict) -> dict:
    """Losses of all routes (domains²) after training, which of them are determined, and both predictions."""
    mask, scale = torch.tensor(setting["mask"]).reshape(DOMAINS, DOMAINS), setting["scale"]
    weights, data = weights_of_routes(scale, setting["seed"]), task()
    step = min(LARGEST, routing.step_of_rate(ROUTING_RATE, data, mask))
    routing.train(weights, data, mask, step=step, steps=setting["steps"], every=setting["steps"])
    s, begin = torch.linalg.svdvals(data.yx[0]), rivals.effective_start(scale, DOMAINS)
    try:
        predicted = rivals.predicted_loss(mask, data, scale)
    except ValueError:  # domains differ, or weights are not small
        predicted = None
    b1, b2 = closed_forms.routing_descent(setting["steps"], s, 0.25, DOMAINS, begin, step)
    return {
        "losses": routing.route_losses(weights, data)[0].flatten(),
        "reachable": routing.reachable(mask).flatten().double(),
        "predicted": predicted,
        "theory": closed_forms.routing_loss(b1, b2, s, 0.25, data.yy),
    }


# --- separability ------------------------------------------------------------------------------------------------------

SEPARABILITY = [
    {"margin": 0.6, "seed": 1, "steps": 150},
    {"margin": 0.0, "seed": 2, "steps": 100},
    {"margin": 0.82, "seed": 3, "steps": 120},
    {"margin": 1.5, "seed": 4, "steps": 150},
]


def expected_separability(setting: dict) -> dict:
    """Losses of both gated networks and of a ReLU network (steps + 1,), times to a loss of 0.2, shares of its units by kind."""
    margin, steps, step, hidden, long = setting["margin"], setting["steps"], 0.4, 128, 600
    std = math.sqrt(4e-8 / hidden)  # as on the page
    gatings = {"line": separability.line_pathways(margin), "xor": separability.xor_pathways(margin)}
    starts = {name: gating.initial_strength(hidden, std**2) for name, gating in gatings.items()}
    curves = {name: separability.loss_curve(long, gating, starts[name], step) for name, gating in gatings.items()}
    x, y = tasks.separability(margin)
    weights = network(setting["seed"], 3, hidden, 1, std)
    run = relu.train(weights, x, y, step=step, steps=steps)
    kinds = separability.kinds_of_gate(relu.gates(weights, x))
    return {
        **{name: curve[: steps + 1] for name, curve in curves.items()},
        "relu": run["loss"],
        "times": [float(linear.crossing(torch.arange(long + 1), curve, 0.2)) for curve in curves.values()],
        "shares": {name: float(relu.share(weights, kind)) for name, kind in kinds.items()},
    }


# --- contexts ----------------------------------------------------------------------------------------------------------

CONTEXTS = [
    {"contexts": 4, "a0": 1e-6, "head": 1.0, "steps": 350},
    {"contexts": 2, "a0": 1e-3, "head": 3.0, "steps": 200},
    {"contexts": 3, "a0": 1e-8, "head": 1000.0, "steps": 450},
    {"contexts": 5, "a0": 1e-4, "head": 30.0, "steps": 150},
]


def starts(setting: dict) -> torch.Tensor:
    """The initial strength of a pathway that serves k contexts, (contexts,): single ones get the head start."""
    given = torch.full((setting["contexts"],), setting["a0"], dtype=torch.float64)
    given[0] *= setting["head"]
    return given


def expected_contexts(setting: dict) -> dict:
    """Lengths (modes, sizes) from `race_of_all_sets`, the loss from the full `vector_race_discrete`, speeds of the residual."""
    number, steps, step, a0 = setting["contexts"], setting["steps"], 0.004, starts(setting)
    modes = contexts.item_modes(tasks.tree(8))
    different = modes[[0, 1, 3]]
    sets = contexts.subsets(number, *range(1, number + 1))
    path = contexts.vector_race_discrete(steps, modes, sets, a0[sets.sum(1) - 1], step)
    return {
        "lengths": contexts.race_of_all_sets(steps, different, number, a0, step),
        "loss": contexts.vector_race_loss(path[-1], modes, sets),
        "speeds": [float(contexts.residual_speed(float(different[0]), number, k, 8)) for k in range(1, number)],
    }


# --- threshold ---------------------------------------------------------------------------------------------------------

THRESHOLD = [
    {"task": "tree", "c": 0.3, "std": 2e-4, "margin": 0.5, "seed": 1, "steps": 400},
    {"task": "tree", "c": 0.01, "std": 2e-5, "margin": 0.5, "seed": 2, "steps": 700},
    {"task": "xor", "c": 1.0, "std": 2e-4, "margin": 0.5, "seed": 3, "steps": 900},
    {"task": "xor", "c": 0.4, "std": 1e-3, "margin": 0.9, "seed": 4, "steps": 600},
]
THRESHOLD_HIDDEN, THRESHOLD_STEP = 32, {"tree": 0.01, "xor": 0.02}


def data_with_constant(setting: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs with the constant, and targets."""
    x, y = tasks.hierarchy(8) if setting["task"] == "tree" else tasks.separability(setting["margin"])
    y = y if setting["task"] == "tree" else tasks.one_row_per_class(y)
    return linearization.with_constant(x, setting["c"]), y


def expected_threshold(setting: dict) -> dict:
    """Losses of the ReLU and the linear network after training, unit states; for the XOR also preference and directions."""
    x, y = data_with_constant(setting)
    found, kind, steps = {}, setting["task"], setting["steps"]
    for activation in ("linear", "relu"):
        weights = network(setting["seed"], len(x), THRESHOLD_HIDDEN, len(y), setting["std"])
        how = {"reduction": "sum", "activation": activation}
        relu.train(weights, x, y, step=THRESHOLD_STEP[kind], steps=steps, every=steps, **how)
        found[activation] = relu.loss(weights, x, y, **how)
    found["states"] = {name: float(share) for name, share in relu.unit_states(relu.gates(weights, x)).items()}
    if kind == "tree":
        return found | {"border": border(setting["std"], setting["seed"])}
    directions = linearization.early_directions(x, y)
    return found | {
        "preference": linearization.linear_preference(weights, setting["margin"], setting["c"]),
        "speeds": sorted((one.speed for one in directions), reverse=True),
    }


def border(std: float, seed: int) -> float:
    """The constant that should turn half of a network's units on, on the tree: read off one without a bias."""
    x, y = tasks.hierarchy(8)
    weights = [w[None] for w in network(seed, 9, THRESHOLD_HIDDEN, len(y), std)]
    plan = relu.schedule(8 + 2 * math.log10(2e-3 / std), THRESHOLD_STEP["tree"], 60)
    strengths = 10 ** torch.linspace(-4, 1, 101, dtype=torch.float64)
    on = linearization.predicted_on(linearization.without_bias(weights, x, y, **plan), strengths)
    return float(linearization.threshold(strengths, on)[0])


# --- functions ---------------------------------------------------------------------------------------------------------

FUNCTIONS = [
    {"activation": "relu", "magnitude": 4.0, "depth": 3, "seed": 7},
    {"activation": "tanh", "magnitude": 8.0, "depth": 4, "seed": 2},
    {"activation": "sine", "magnitude": 0.5, "depth": 1, "seed": 3},
    {"activation": "gaussian", "magnitude": 2.0, "depth": 6, "seed": 4},
    {"activation": "relu", "magnitude": 16.0, "depth": 2, "seed": 5},
]


def random_layers(setting: dict) -> list[random_networks.Layer]:
    """The layers, 64 units wide, that a browser draws: `F.draw` in functions.js."""
    sizes, made, drawn = (2, *[64] * setting["depth"], 1), [], 0
    for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
        count, reach = fan_out * (fan_in + 1), setting["magnitude"] * math.sqrt(6 / (fan_in + fan_out))
        numbers = torch.from_numpy(2 * uniforms(setting["seed"], count, skip=drawn) - 1)
        weight, bias = numbers.split([fan_out * fan_in, fan_out])
        made.append({"weight": reach * weight.reshape(1, fan_out, fan_in), "bias": bias.reshape(1, 1, fan_out)})
        drawn += count
    return made


def expected_functions(setting: dict) -> dict:
    """The image (64²), its Fourier and Lempel-Ziv complexity, and what a plane and white noise get."""
    values = random_networks.forward(random_layers(setting), complexity.grid(SIDE).double(), setting["activation"])
    image = values.reshape(SIDE, SIDE)
    return {
        "image": image.flatten(),
        "fourier": complexity.fourier(image),
        "phrases": complexity.lempel_ziv(image),
        "floor": complexity.fourier_plane(SIDE),
        "ceiling": complexity.fourier_flat(SIDE),
    }


# --- kinks -------------------------------------------------------------------------------------------------------------

KINKS = [
    {"units": 64, "seed": 4, "target": "wave", "steps": 200},
    {"units": 8, "seed": 1, "target": "hat", "steps": 60},
    {"units": 128, "seed": 2, "target": "stairs", "steps": 120},
    {"units": 64, "seed": 5, "target": "wave", "steps": 1},
]
KINKS_POINTS, KINKS_RATE = 81, 0.02


def grid() -> torch.Tensor:
    """The inputs, (points, 1)."""
    return torch.linspace(-1, 1, KINKS_POINTS, dtype=torch.float64)[:, None]


def target(name: str) -> torch.Tensor:
    """One of the curves on the grid, (points,)."""
    x = grid()[:, 0]
    if name == "wave":
        return 0.7 * torch.sin(2 * math.pi * x)
    if name == "stairs":
        return 0.35 * torch.floor(2 * x + 0.51) + 0.1
    size = x.abs()
    return 0.6 - torch.where(size < 0.7, 1.2 * (size - 0.2).clamp(min=0), 0.6)


def frozen(units: int, seed: int) -> tuple[biases.Frozen, torch.Tensor]:
    """The weights that a browser draws and freezes, in double precision, biases (1, units) with kinks in [-1, 1]: `K.draw`."""
    w, a, kink = torch.from_numpy(2 * uniforms(seed, 3 * units) - 1).split(units)
    return biases.Frozen(2 * w[:, None], 12 / math.sqrt(units) * a[None]), (-2 * w * kink)[None]


def learned(net: biases.Frozen, bias: torch.Tensor, goal: torch.Tensor, steps: int) -> tuple[torch.Tensor, list[float]]:
    """Biases (1, units) after so many steps of Adam on all points at once, and the losses before each of them and at the end.

    The same as `biases.train_biases` with the squared loss, one batch and a constant rate, which works in single precision.
    """
    bias = bias.clone().requires_grad_()
    optimiser, losses = torch.optim.Adam([bias], lr=KINKS_RATE), []
    for step in range(steps + 1):
        optimiser.zero_grad()
        loss = biases.LOSSES["squared"](biases.answers(net, bias, grid()), goal[:, None])[0].sum()
        losses.append(float(loss.detach()))
        if step < steps:
            loss.backward()
            optimiser.step()
    return bias.detach(), losses


def expected_kinks(setting: dict) -> dict:
    """The target, the loss before and after learning, the biases and the answers."""
    goal = target(setting["target"])
    net, start = frozen(setting["units"], setting["seed"])
    bias, losses = learned(net, start, goal, setting["steps"])
    answer = biases.answers(net, bias, grid())[0, :, 0]
    return {"target": goal, "before": losses[0], "loss": losses[-1], "bias": bias[0], "answer": answer}


# --- all of them -------------------------------------------------------------------------------------------------------

TWINS = {  # of each explorer its settings and what `lib` says of one of them
    "modes": (MODES, expected_modes),
    "routing": (ROUTING, expected_routing),
    "separability": (SEPARABILITY, expected_separability),
    "contexts": (CONTEXTS, expected_contexts),
    "threshold": (THRESHOLD, expected_threshold),
    "functions": (FUNCTIONS, expected_functions),
    "kinks": (KINKS, expected_kinks),
}
