"""The workbench: `execution` of pages, the `nursery` of their kernels, parameterised `runs`, `sweeps` over many of them, the
`commands` of `python -m lib`, and the `browser` that looks at the book."""

from lib import door

INSIDE = ("execution", "nursery", "runs", "sweeps", "commands", "browser")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in INSIDE})
