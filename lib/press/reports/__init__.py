"""Reports: runs to look at. `sheet` makes HTML files that open anywhere, with the network off; `facts` holds what a run measured
beside what the book says; `run` is the report of one run, `compare` of two, `sweep` draws what was measured against what was
swept; `table` prints for a terminal, `progress` says how long it takes, `commands` are theirs."""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__, {"sheet": (), "facts": (), "run": (), "compare": (), "sweep": (), "table": (), "progress": (), "commands": ()}
)
