"""Rendering: the Sphinx extension (`extension`) that makes boxes, tables and the reference out of claims, pages and `lib` itself.
`generated` is shared, `boxes` stand on a page, `boards` show the book, `verdict_pages` a paper, `benches` measurements."""

from lib import door

INSIDE = ("generated", "boxes", "boards", "verdict_pages", "benches", "reference", "downloads", "extension")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in INSIDE})
