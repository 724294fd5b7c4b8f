"""The workbench: `execution` of pages, parameterised `runs`, `sweeps` over many of them, the `commands` of `python -m lib`,
the `browser` that looks at the book, and what is `installed`."""

from lib import door

INSIDE = ("execution", "runs", "sweeps", "commands", "browser", "installed")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in INSIDE})
