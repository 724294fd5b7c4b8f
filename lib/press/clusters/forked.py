"""What the process imports that forks the workers of a sweep (`places.forking`): all that they need. They end with it.

Dask would take a worker whose maker is gone for a dead one, start another, and find the first still there.
"""

import os

import distributed.http.worker  # noqa: F401

from lib.press.workbench import execution, sweeps  # noqa: F401

os.register_at_fork(after_in_child=execution.die_with_parent)
