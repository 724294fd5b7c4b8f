"""Trials: would the tests notice an error of one per cent?

`planting` finds places for small errors in the science, `warm` interpreters judge them one at a time, `mutants` keeps the
score.
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"planting": (), "warm": (), "mutants": ()})
