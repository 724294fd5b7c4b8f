"""Where a sweep runs: `places` (this machine, any Dask scheduler), `slurm` (jobs of our own on a Slurm cluster), and `export`
(one command per point, for clusters where no scheduler may run)."""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"places": (), "slurm": (), "export": ()})
