"""Pictures of architecture graphs and of what their gates leave open."""

import matplotlib.pyplot as plt
import networkx
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from lib.gated.network import Data, Edge, Network
from lib.plots import COLOURS

OFF = "#c8ccd2"


def draw(
    network: Network,
    data: Data | None = None,
    example: int | None = None,
    ax: Axes | None = None,
    sizes: bool = True,
    radius: float = 0.2,
    paint: dict[str, str] | None = None,
) -> Axes:
    """A picture of `network`, inputs at the left: nodes with their names and sizes, and edges.

    With `data`, gated nodes and edges are orange and say on which share of the examples they are on. With `example` too,
    what carries no signal on that example is pale. `paint` gives nodes and edges colours of their own, and everything else
    is pale: the parts of a path, say (Neural Race, Fig. 2b).
    """
    ax = ax or plt.gca()
    place = positions(network, gap=max(0.55, 3.2 * radius))
    share = {name: float((gate != 0).double().mean()) for name, gate in data.gates.items()} if data else {}
    alive = _alive(network, data, example) if example is not None else None

    def colour(name: str) -> str:
        if paint is not None:
            return paint.get(name, OFF)
        if alive is not None and name not in alive:
            return OFF
        return COLOURS["gated"] if name in share else COLOURS["data"]

    parallel = {}
    for name, edge in network.edges.items():
        turn = parallel[edge.source, edge.target] = parallel.get((edge.source, edge.target), -1) + 1
        (x0, y0), (x1, y1) = place[edge.source], place[edge.target]
        bend = _bend(place, edge, radius) + 0.25 * ((turn + 1) // 2) * (-1) ** turn
        points = dict(posA=(x0, y0), posB=(x1, y1), connectionstyle=f"arc3,rad={bend}", shrinkA=0, shrinkB=0)
        points |= {end: Circle(at, radius, transform=ax.transData) for end, at in (("patchA", (x0, y0)), ("patchB", (x1, y1)))}
        ax.add_patch(FancyArrowPatch(**points, arrowstyle="-|>", mutation_scale=9, color=colour(name), linewidth=1.4))
        if alive is None and name in share:
            middle = (x0 + x1 + bend * (y1 - y0)) / 2, (y0 + y1 - bend * (x1 - x0)) / 2  # of matplotlib's arc3
            ax.text(middle[0], middle[1] + 0.05, f"{share[name]:.0%}", color=colour(name), fontsize=8.5, ha="center")
    for node, (x, y) in place.items():
        ax.add_patch(Circle((x, y), radius, facecolor="white", edgecolor=colour(node), linewidth=1.6, zorder=3))
        text = f"{node}\n{network.sizes[node]}" if sizes else node
        ax.text(x, y, text, ha="center", va="center", fontsize=8.5, color=colour(node), zorder=4)
        if alive is None and node in share:
            ax.text(x, y - radius - 0.03, f"on {share[node]:.0%}", color=colour(node), fontsize=8.5, ha="center", va="top")
    xs, ys = zip(*place.values(), strict=True)
    margin = radius + 0.12
    curved = max(abs(_bend(place, e, radius)) * (place[e.target][0] - place[e.source][0]) for e in network.edges.values())
    room = max(margin, curved / 2 + 0.08)
    ax.set(xlim=(min(xs) - margin, max(xs) + margin), ylim=(min(ys) - room, max(ys) + room), aspect="equal")
    ax.axis("off")
    return ax


def positions(network: Network, gap: float = 0.55) -> dict[str, tuple[float, float]]:
    """Where to draw each node, dict of (x, y): column by longest way from an input, `gap` apart within a column."""
    column = {}
    for node in network.order:
        column[node] = 1 + max((column[edge.source] for edge in network.incoming[node]), default=-1)
    last = max(column[node] for node in network.outputs)
    column |= {node: last for node in network.outputs}
    place = {}
    for number in range(last + 1):
        nodes = [node for node in network.sizes if column[node] == number]
        for i, node in enumerate(nodes):
            place[node] = (float(number), gap * ((len(nodes) - 1) / 2 - i))
    return place


def _bend(place: dict[str, tuple[float, float]], edge: Edge, radius: float) -> float:
    """How much to curve an edge, so that it passes other nodes at a distance: 0 if a straight line does."""
    (x0, y0), (x1, y1) = place[edge.source], place[edge.target]
    for node, (x, y) in place.items():
        height = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        if node not in (edge.source, edge.target) and x0 < x < x1 and abs(y - height) < 1.5 * radius:
            return 0.25 if y > height else -0.25
    return 0.0


def _alive(network: Network, data: Data, example: int) -> set[str]:
    """Names of nodes and edges that carry signal from an input to an output on one example."""
    on = {name for name in [*network.sizes, *network.edges] if data.gate(name)[example] != 0}
    graph = networkx.DiGraph()
    for name, edge in network.edges.items():
        if name in on:
            graph.add_edge(edge.source, ("edge", name))
            graph.add_edge(("edge", name), edge.target)
    graph.remove_nodes_from([v for v in network.sizes if v not in on])
    graph.add_nodes_from(v for v in [*network.inputs, *network.outputs] if v in on)
    after = set().union(*(networkx.descendants(graph, v) | {v} for v in network.inputs))
    before = set().union(*(networkx.ancestors(graph, v) | {v} for v in network.outputs if v in on), set())
    return {name if isinstance(name, str) else name[1] for name in after & before}
