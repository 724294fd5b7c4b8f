"""The workbench: `execution` of pages, parameterised `runs`, `sweeps` over many of them, the `commands` of `python -m lib`,
and the `browser` that looks at the book."""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"execution": (), "runs": (), "sweeps": (), "commands": (), "browser": ()})
