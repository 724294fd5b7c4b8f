"""Pictures of architectures show what is there."""

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.patches import Circle, FancyArrowPatch

from lib import gated
from lib.gated import pictures, random_graphs


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def fork():
    network = gated.Network(
        {"x": 2, "left": 3, "right": 3, "y": 1}, [("x", "left"), ("x", "right"), ("left", "y"), ("right", "y"), ("x", "y")]
    )
    one = torch.ones(2, 4, dtype=torch.float64)
    return network, gated.Data({"x": one}, {"y": one[:1]}, {"left": [1, 0, 0, 0], "x→y": [0, 0, 1, 1]})


def test_a_picture_has_every_node_and_edge_and_says_how_often_gates_are_open(ax):
    network, data = fork()
    pictures.draw(network, data, ax=ax)
    assert sum(isinstance(patch, Circle) for patch in ax.patches) == 4
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == 5
    texts = {text.get_text() for text in ax.texts}
    assert {"x\n2", "on 25%", "50%"} <= texts


def test_positions_go_from_left_to_right_and_never_coincide():
    for seed in range(30):
        network, _, _ = random_graphs.random_example(seed)
        place = pictures.positions(network)
        assert all(place[edge.source][0] < place[edge.target][0] for edge in network.edges.values())
        assert len(set(place.values())) == len(network.sizes)
