"""The bindery, where pages become a book.

`building` it with the `binder`, `freshness` of its documents, the `sidebar` with their titles, a live `preview` of one page; the
quick `check` of what a change has `affected`, the whole `suite` of tests; `new` pages; the `commands` for all of this.
"""

from lib import door

INSIDE = ("building", "binder", "freshness", "sidebar", "preview", "affected", "check", "suite", "new", "commands")
__getattr__, __dir__, __all__ = door(__name__, {name: () for name in INSIDE})
