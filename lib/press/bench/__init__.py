"""The bench: what the fast paths of the library cost on this machine, beside plain programs for the same numbers.

`timing` counts processor seconds and slopes, `machine` measures what this one can do at best, `networks` and `functions` hold
the cases (a fast and a plain program each), `authors` runs a checkout of the papers' own programs. `running` makes a `record`,
which the book keeps and `tables` and `figure` show; `command` is `python -m lib bench`.
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "timing": (),
        "machine": (),
        "networks": (),
        "functions": (),
        "authors": (),
        "record": (),
        "tables": (),
        "running": (),
        "command": (),
    },
)
