"""Rendering: the Sphinx extension that makes boxes, tables and the reference out of claims, executed pages and `lib` itself.

`generated` is what its directives share, `boxes` stand on a page, `boards` show the whole book, `reference` describes the
library, `extension` is what Sphinx loads.
"""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"generated": (), "boxes": (), "boards": (), "reference": (), "extension": ()})
