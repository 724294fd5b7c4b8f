"""Trials: would the tests notice an error of one per cent, and would a page run on a GPU?

`planting` finds places for small errors in the science, `warm` interpreters judge them one at a time, `mutants` keeps the
score. `far` is a device that refuses to mix with the CPU.
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"planting": (), "warm": (), "mutants": (), "far": ()})
