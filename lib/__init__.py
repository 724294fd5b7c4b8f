"""The library behind the book *Racing to Simplicity*: eight rooms, named after the science.

    linear      deep linear networks: closed forms of their modes, chains of matrices, descent, random draws
    data        the papers' synthetic tasks and the real images
    complexity  how complex is a function? Fourier, cosine, polynomials, Lempel-Ziv, effective rank
    gated       gated deep linear networks on any graph: paths, effective datasets, race reduction, routing
    relu        ReLU networks from small weights: gates, contexts, separability, early linearisation
    redshift    random, trained, painting and writing networks, and their infinite-width limit
    biases      frozen random weights with learned biases or masks, the recurrent variant, the theory
    press       the book's own machinery: claims, pages, runs, sweeps, directives, plots, commands

Every room's docstring says what is inside and shows five lines that run: `help(lib.gated)`. Importing a room costs
nothing; what it holds is imported when it is first used.

A room may use those that stand before it in `ROOMS`, never one behind it. The press prints the science and is not part
of it: the only thing that science takes from it is `plots`, where it draws.
"""

import sys
from importlib import import_module

ROOMS = ("linear", "data", "complexity", "gated", "relu", "redshift", "biases", "press")


def door(room, inside):
    """(`__getattr__`, `__dir__`, `__all__`) of a room that holds the modules `inside`, {module: names it shows at the door}.

    Modules are imported on first use, so that a page depends on those that it uses and on no others.
    """
    home = {name: module for module, names in inside.items() for name in names}
    names = sorted(list(inside) + list(home))  # old interpreters parse this file, too

    def get(name):
        if name in home:
            value = getattr(import_module(room + "." + home[name]), name)
        elif name in inside:
            value = import_module(room + "." + name)
        else:
            raise AttributeError("there is no %r in %s; it holds %s" % (name, room, ", ".join(names)))  # noqa: UP031
        setattr(sys.modules[room], name, value)
        return value

    return get, lambda: names, names


__getattr__, __dir__, __all__ = door(__name__, {room: () for room in ROOMS})
