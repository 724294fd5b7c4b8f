"""Explorers: figures that compute in the reader's browser, each a twin of functions of `lib` that a test holds it against.

`stage` has what they are built from, `draws` the random numbers that browsers draw as well, `directive` puts one on a page. The
others are the explorers themselves; their scripts are in book/_static/explorers. The door holds no more: pages do not use it.
"""

from lib import door

EXPLORERS = ("modes", "routing", "separability", "contexts", "threshold", "functions", "kinks")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in ("stage", "draws", "directive", *EXPLORERS)})
