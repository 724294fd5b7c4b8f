"""Rendering: the Sphinx extension that makes boxes, tables and the reference out of claims, executed pages and `lib` itself.

`generated` is what its directives share, `freshness` tells when they must be made again, `boxes` stand on a page, `boards` show
the whole book, `verdict_pages` a paper, `reference` describes the library, `downloads` are for other programs, `extension` is
what Sphinx loads.
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "generated": (),
        "freshness": (),
        "boxes": (),
        "boards": (),
        "verdict_pages": (),
        "reference": (),
        "downloads": (),
        "extension": (),
    },
)
