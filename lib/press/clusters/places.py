"""The places where a sweep can run: the cores of this machine, Slurm jobs of its own, or any Dask scheduler.

A cluster that the sweep started itself is tended while it lasts (`tend`) and ended with it; a scheduler that was there
before is only asked.
"""

import contextlib
import functools
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from lib.press.clusters import slurm
from lib.press.errors import RunError
from lib.press.workbench import runs

DEATHS = 20  # workers that may die under one point before it counts as failed
LOST = "60s"  # a worker of this machine that is away for so long is given up; killed ones come back, slowly on a busy machine

Place = str | slurm.Slurm  # "local", the address of a scheduler, or jobs on Slurm


def connect(on: Place, workers: int | None, scratch: Path, shared: Path):
    """A Dask client, and the cluster that was started for it (None for the scheduler at an address).

    A local cluster listens on loopback only and keeps its files in `scratch`; Slurm jobs keep theirs in `shared`, a folder
    that all machines see.
    """
    if isinstance(on, str) and refuses(on):
        raise RunError(f"there is no Dask scheduler at {on} (nobody listens there)")
    import dask
    from distributed import Client

    dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, "distributed.admin.log-length": 0})
    if isinstance(on, slurm.Slurm):
        ours = slurm.start(on, shared)
        return Client(ours), ours
    if on == "local":
        ours = local(workers or os.cpu_count() or 1, scratch)
        return Client(ours), ours
    try:
        return Client(on, timeout=10), None
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(f"there is no Dask scheduler at {on} ({type(error).__name__})") from None


def refuses(address: str) -> bool:
    """Whether a machine says that nobody listens at tcp://host:port, where Dask would go on asking until its time is over."""
    try:
        parts = urlsplit(address)
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), timeout=10).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):  # no such machine, no answer, no number: Dask has words for these
        pass
    return False


def local(workers: int, scratch: Path):
    """A Dask cluster of this machine: `workers` processes of one thread each, on loopback."""
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.deploy.lost-worker-timeout": LOST} | forking())
    hears = signal.getsignal(signal.SIGINT)
    for _ in range(3):
        try:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: Ctrl-C is for the sweep, which then ends its workers
            return LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address=None, scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},  # any port
                silence_logs="CRITICAL", local_directory=str(scratch), env={"TMPDIR": str(scratch)},
            )  # fmt: skip
        except (RuntimeError, OSError, TimeoutError) as error:  # a worker that was killed while it started
            trouble = error
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, hears)
    raise RunError(f"the local cluster did not start: {trouble}")


def forking() -> dict:
    """Dask's settings for workers that are forks of one process which has made their imports (`forked`), where there are forks.

    They start, and come back when they were killed, in a sixth of the time.
    """
    import multiprocessing

    import dask
    from distributed.utils import get_mp_context

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return {}
    settings = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(settings):
        get_mp_context().set_forkserver_preload(["lib.press.clusters.forked"])
    return settings


# --- keeping a cluster of our own alive ------------------------------------------------------------------------------


def closed(ours) -> list:
    """Names of the workers of a cluster whose nannies have given up."""
    from distributed.core import Status

    return [name for name, worker in list(ours.workers.items()) if worker.status in (Status.closed, Status.failed)]


def tend(ours, wanted: int, over: threading.Event, pause: float = 5.0, dead: Callable = closed) -> None:
    """Until `over`, look at a cluster every `pause` seconds and have it start again what it has lost.

    distributed gives up on a worker that stays away for its `lost-worker-timeout`: it closes the nanny that was about to
    restart the worker, and asks for no other. On a busy machine a killed worker may need longer than that to come back;
    once all have been given up, a sweep would wait for ever. Asking for the same number of workers again is enough: those
    that are there stay, only missing ones are started. `dead` names those that look alive and are not.
    """
    while not over.wait(pause):
        with contextlib.suppress(Exception):  # a cluster that is being closed, a queue that does not answer: the next look
            for name in dead(ours):
                ours.workers.pop(name, None)
            if len(ours.workers) < wanted:
                ours.scale(wanted)


def shut_down(client, ours) -> None:
    """Close without waiting for what was interrupted; the points' processes end with their workers."""
    for part in (client, ours):
        if part is not None:
            with contextlib.suppress(Exception):
                part.close(timeout=5)


# --- which device the workers have -----------------------------------------------------------------------------------


def device_picker(on: Place | None) -> Callable[[str], str]:
    """`runs.pick_device` for the machines that will do the work: with a scheduler elsewhere, all its workers are asked.

    None, and Slurm, are machines that cannot be asked yet: what is named is believed.
    """
    if on == "local":
        return runs.pick_device
    if on is None or isinstance(on, slurm.Slurm):
        return named_device

    @functools.cache
    def pick(device: str) -> str:
        if device == "cpu":
            return device
        client, _ = connect(on, None, Path(), Path())
        try:
            found = set(client.run(device_here, device).values())
        finally:
            client.close(timeout=5)
        if not found:
            raise RunError(f"the scheduler at {on} has no workers yet; which device they have cannot be known")
        if refusals := found - {"cpu", "cuda"}:
            raise RunError(f"on a worker of {on}: {min(refusals)}")
        if len(found) == 2:
            raise RunError(f"some workers of {on} have CUDA and some do not; choose --device cpu, or only workers with CUDA")
        return found.pop()

    return pick


def named_device(device: str) -> str:
    """The device that was named; which one `auto` would find on a machine that has yet to be given to us, nobody knows."""
    if device not in runs.DEVICES:
        return runs.pick_device(device)  # says which there are
    if device == "auto":
        raise RunError("the machines that will do the work cannot be asked yet: name the device, --device cpu or --device cuda")
    return device


def device_here(device: str) -> str:
    """What `pick_device` says on a worker; an error comes back as its words."""
    try:
        return runs.pick_device(device)
    except RunError as error:
        return str(error)
