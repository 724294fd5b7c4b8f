"""The bindery, where pages become a book: `building` it, a live `preview` of one page, the quick `check` and the whole `suite`
of tests with what a change has `affected`, and `new` pages."""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__, {"building": (), "preview": (), "affected": (), "check": (), "suite": (), "new": (), "commands": ()}
)
