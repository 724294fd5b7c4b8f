"""How much faster the ensembles of Neural Redshift are than plain programs, measured side by side in one run.

CPU time does not count waiting, but busy neighbours slow memory down; so each program is timed several times, in turns,
and the cheapest time of each counts.
"""

import time

import numpy as np
import torch

from lib import complexity
from lib.press.bench import functions
from lib.redshift import random_networks
from lib.redshift.random_networks import Prior
from lib.redshift.units import activations

M, DEPTH, WIDTH = 64, 6, 64


def plain_network(activation, depth, magnitude, generator):
    """One network of one depth, drawn and evaluated by itself, in the double precision that is always right."""
    x = random_networks.grid(M)
    sizes = [2, *[WIDTH] * depth, 1]
    for index, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        s = magnitude * (6 / (fan_in + fan_out)) ** 0.5
        weight = s * (2 * torch.rand(fan_in, fan_out, generator=generator, dtype=torch.float64) - 1)
        bias = 2 * torch.rand(fan_out, generator=generator, dtype=torch.float64) - 1
        x = x @ weight + bias
        if index < depth:
            x = activations.ACTIVATIONS[activation](x)
    return x.reshape(M, M).numpy()


def plain_measures(y):
    """All measures of one image: those of the bench, and Lempel-Ziv."""
    levels = np.rint((y - y.min()) / (y.max() - y.min()) * 9).astype(int)
    return [*functions.plain_measures(y), functions.plain_phrases(levels.T.ravel().tolist())]


def fast_measures(y):
    measures = [complexity.fourier(y, "quadrant"), complexity.fourier(y, "half plane"), complexity.cosine(y)]
    return torch.stack([*measures, complexity.chebyshev(y), complexity.legendre(y), complexity.lempel_ziv(y).double()], -1)


def seconds(program):
    began = time.process_time()
    program()
    return time.process_time() - began


def pictures(seeds, seed=0):
    return torch.cat(
        [
            random_networks.images(a, seeds, DEPTH, WIDTH, Prior(4.0), depths=True, seed=seed).flatten(0, 1)
            for a in ("relu", "sine")
        ]
    )


def test_both_programs_measure_the_same():
    y = pictures(2)
    plain = torch.tensor([plain_measures(image.numpy()) for image in y], dtype=torch.float64)
    torch.testing.assert_close(fast_measures(y), plain, rtol=1e-8, atol=0)


def test_lempel_ziv_is_thirty_times_faster_than_a_set_of_phrases(capsys):
    symbols = complexity.traverse(complexity.quantise(pictures(16)))  # 192 images of 64 x 64, smooth and noisy ones
    lists = symbols.tolist()
    assert complexity.phrases(symbols, 10).tolist() == [functions.plain_phrases(sequence) for sequence in lists]  # compiles, too
    fast, plain = [], []
    for turn in range(6):
        fast.append(seconds(lambda: [complexity.phrases(symbols, 10) for _ in range(5)]) / 5 / len(lists))
        few = lists[turn::6]
        plain.append(seconds(lambda few=few: [functions.plain_phrases(sequence) for sequence in few]) / len(few))
    ratio = np.median(plain) / min(fast)
    with capsys.disabled():
        print(f"\nLempel-Ziv: {1e6 * np.median(plain):.0f} us plain, {1e6 * min(fast):.1f} us ours, {ratio:.0f}x")
    assert ratio > 30


def test_sampling_and_measuring_is_five_times_faster_than_a_loop_over_networks(capsys):
    """Per function: networks of six depths, ReLU and sine, and all six measures."""
    generator = torch.Generator().manual_seed(0)

    def loop():
        for activation in ("relu", "sine"):
            for depth in range(1, DEPTH + 1):
                plain_measures(plain_network(activation, depth, 4.0, generator))

    fast_measures(pictures(2))  # compiles
    fast, plain = [], []
    for turn in range(5):
        fast.append(seconds(lambda turn=turn: fast_measures(pictures(8, turn))) / (2 * 8 * DEPTH))
        plain.append(seconds(loop) / (2 * DEPTH))
    ratio = min(plain) / min(fast)
    with capsys.disabled():
        print(f"\nRandom functions: {1e3 * min(plain):.1f} ms each plain, {1e3 * min(fast):.2f} ms ours, {ratio:.1f}x")
    assert ratio > 5
