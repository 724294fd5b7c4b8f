"""Verdicts: what a measurement says, and how it is shown.

`arithmetic` of bounds, `intervals` over seeds, `rows` with their mathematics and addresses, `standing` (which verdict
counts where a laptop and a recorded run differ, totals by author, slack), `seeds` (does a verdict flip when the dice fall
otherwise?), `recordings` (runs that are kept with the book, and whether they still hold).
"""

from lib import door

INSIDE = ("arithmetic", "intervals", "rows", "standing", "seeds", "recordings")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in INSIDE})
