"""The authors' own programs, timed beside ours where the reader has a checkout of them.

Make Haste Slowly, Figure 4: the five scripts that `3_context_diff/run.sh` of github.com/CAandL-Lab/make-haste-slowly (commit
b7d6e41) starts before it draws. Neural Race, Figure 4: the network of `notebooks/Gated_DLN_solution_verification_figure.ipynb`
of github.com/facebookresearch/gated-dln (commit a49a822), ten networks of 500 epochs. Programs run as they are, on one
thread, in a copy that is thrown away; what they spend on starting, on writing files and on singular values that they write
down is counted apart, since ours does nothing of the kind.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import torch

from lib.press import files
from lib.press.bench.record import BenchError
from lib.press.bench.timing import processor_seconds

HASTE, SCRIPTS = "3_context_diff", ("relu", "gdln", "gdln_single", "race", "closed")
NOTEBOOK = "notebooks/Gated_DLN_solution_verification_figure.ipynb"
NETWORKS, EPOCHS = 10, 500  # of the notebook's first training loop
TIMEOUT = 1800
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Runs in the authors' interpreter, in which there may be no lib: starts a program and says where its seconds went. Text that
# is written (`savetxt`), drawings, and singular values are set apart; so is all that happens before the program's own lines.
DRIVER = """
import json, sys, time
kind, path, report = sys.argv[1:4]
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt, numpy as np, numpy.linalg
apart = {"writing": 0.0}
def aside(owner, name):
    inner = getattr(owner, name)
    def timed(*args, **kwargs):
        begin = time.process_time()
        try:
            return inner(*args, **kwargs)
        finally:
            apart["writing"] += time.process_time() - begin
    setattr(owner, name, timed)
aside(np, "savetxt"), aside(plt, "savefig"), aside(plt, "plot")
sys.path.insert(0, ".")
if kind == "script":
    import jax, jax.numpy
    pieces = [open(path, encoding="utf-8").read()]
else:
    import torch, omegaconf, scipy.integrate
    torch.set_num_threads(1)
    cells = [c for c in json.load(open(path, encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    texts = ["".join(l for l in c["source"] if not l.startswith("%")) for c in cells]
    last = next(i for i, t in enumerate(texts) if "class GatedDLN" in t)
    pieces = texts[:last + 1]
    aside(np.linalg, "svd")
space = {"__name__": "__main__"}
sys.argv = [path]
for piece in pieces[:-1]:
    exec(compile(piece, path, "exec"), space)
begin, written = time.process_time(), apart["writing"]
exec(compile(pieces[-1], path, "exec"), space)
own = time.process_time() - begin
json.dump({"own": own, "writing": apart["writing"] - written, "whole": time.process_time()}, open(report, "w"))
"""
MODULES = {"script": ("jax", "matplotlib", "sklearn"), "notebook": ("torch", "omegaconf", "matplotlib", "scipy")}


def checkouts(folder: Path) -> dict[str, Path]:
    """{"make-haste-slowly" or "gated-dln": where it lies}: the folder itself, or a folder in it."""
    if not folder.is_dir():
        raise BenchError(f"there is no folder {folder}")
    near = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    wanted = {"make-haste-slowly": f"{HASTE}/relu.py", "gated-dln": NOTEBOOK}
    found = {name: next((path for path in near if (path / file).is_file()), None) for name, file in wanted.items()}
    if not any(found.values()):
        raise BenchError(f"neither {' nor '.join(wanted.values())} is in {folder} or in a folder of it: no checkout to time")
    return {name: path for name, path in found.items() if path}


def timed(folder: Path, python: str = sys.executable) -> dict[str, dict]:
    """{checkout: what it took, and ours beside it}, or {"sentence"} where a program cannot run here."""
    found = checkouts(folder)
    work = {"make-haste-slowly": haste, "gated-dln": race}
    return {name: {"commit": _commit(path)} | work[name](path, python) for name, path in found.items()}


def haste(checkout: Path, python: str) -> dict:
    """Make Haste Slowly's five scripts of Figure 4 and our programs for the same curves, processor seconds each."""
    if sentence := missing(python, "script"):
        return {"sentence": sentence}
    programs = {}
    with files.scratch() as scratch:
        shutil.copytree(checkout / HASTE, scratch / HASTE)
        for name in ("losses", "mds", "svs", "plots"):  # which run.sh makes
            (scratch / HASTE / name).mkdir(exist_ok=True)
        for name in SCRIPTS:
            taken = _run(python, "script", f"{name}.py", scratch / HASTE)
            if "sentence" in taken:
                return taken
            programs[name] = taken
    ours = {name: figure_4(getattr(torch, name)) for name in ("float32", "float64")}
    return {"unit": "processor seconds for all five", "programs": programs, **_against(programs, ours, 1.0)}


def race(checkout: Path, python: str) -> dict:
    """The routing network of the notebook and ours, processor seconds for ten networks of 500 epochs."""
    if sentence := missing(python, "notebook"):
        return {"sentence": sentence}
    with files.scratch() as scratch:
        shutil.copy(checkout / NOTEBOOK, scratch / "notebook.ipynb")
        taken = _run(python, "notebook", "notebook.ipynb", scratch)
    if "sentence" in taken:
        return taken
    ours = {name: routing_networks(getattr(torch, name)) for name in ("float32", "float64")}
    each = {"unit": "processor seconds by network and epoch", "programs": {"notebook": taken}}
    return each | _against({"notebook": taken}, ours, NETWORKS * EPOCHS)


def _against(programs: dict[str, dict], ours: dict[str, float], amount: float) -> dict:
    """Their seconds by unit (whole; without start and writing), ours in both precisions, and how many times theirs is ours."""
    bare = sum(each["own"] - each["writing"] for each in programs.values()) / amount
    theirs = {"whole": sum(each["whole"] for each in programs.values()) / amount, "bare": bare}
    ours = {name: seconds / amount for name, seconds in ours.items()}
    brief = {"theirs": theirs, "ours": ours, "ratio": {name: bare / seconds for name, seconds in ours.items()}}
    return {name: {key: float(f"{value:.4g}") for key, value in part.items()} for name, part in brief.items()}


def figure_4(dtype: torch.dtype, epochs: int = 8001) -> float:
    """Processor seconds of ours, the middle one of three runs, for all curves of Make Haste Slowly's Figure 4, all losses kept.

    The ReLU network, the gated network with pathways for two contexts and that for one, the race from an aligned start, and
    the closed form; same data, widths, initial scale, step and number of epochs as in the scripts.
    """
    from lib import linear, relu
    from lib.data import tasks
    from lib.gated.architectures import pathways
    from lib.relu import contexts

    def everything() -> None:
        x, y = tasks.contexts(("tree", "ring", "cross"), 8)
        _, short = relu.into_column_space(y)
        plan = {"step": 0.001, "steps": epochs, "every": 1, "reduction": "sum"}
        start = relu.initial_weights([11, 700, 24], 0.005 / 700, dtype=dtype)
        relu.train(start, x.to(dtype), short.to(dtype), **plan)
        for together in (2, 1):
            seen = contexts.pathway_inputs(x, contexts.subsets(3, 3, together))
            weights = [w.to(dtype) for w in pathways.initial_pathways([100] * 4, 11, 24, 0.005 / 700)]
            pathways.train(weights, seen.to(dtype), short.to(dtype), **plan)
        seen = contexts.pathway_inputs(x, contexts.subsets(3, 3, 2))
        aligned = [w.to(dtype) for w in pathways.aligned_pathways(seen, short, 1e-8)]
        pathways.train(aligned, seen.to(dtype), short.to(dtype), **plan)
        mode = linear.modes(*linear.correlations(x, y))
        time = torch.arange(epochs)[:, None] * 0.001 * 24
        linear.mode_strength(time, mode.s, mode.d, 1e-8)

    return median(processor_seconds(everything) for _ in range(3))


def routing_networks(dtype: torch.dtype, networks: int = NETWORKS, epochs: int = EPOCHS) -> float:
    """Processor seconds (as above) of the notebook's networks: 7 domains, 4 trained, 64 units, rate 0.02, scale 0.2."""
    from lib.data import tasks
    from lib.gated.architectures import routing

    def everything() -> None:
        task, mask = routing.shared_task(*tasks.routing_items((6.0, 4.0, 3.0)), 7), routing.circulant(7, 4)
        weights = routing.initial_weights(task, 64, 0.2, networks, dtype=dtype)
        routing.train(weights, task, mask, step=routing.step_of_rate(0.02, task, mask), steps=epochs, every=1)

    return median(processor_seconds(everything) for _ in range(3))


def missing(python: str, kind: str) -> str:
    """One sentence about what the interpreter lacks for programs of this kind; nothing when it has all."""
    look = f"import importlib.util as u; print(*[m for m in {MODULES[kind]!r} if u.find_spec(m) is None])"
    try:
        asked = subprocess.run([python, "-c", look], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as trouble:
        raise BenchError(
            f"{python} is no Python that can be started ({getattr(trouble, 'strerror', None) or 'no answer'})"
        ) from None
    if asked.returncode:
        raise BenchError(f"{python} is no Python that can be started")
    lacks = asked.stdout.split()
    needs = ", ".join(lacks)
    return f"not timed: the interpreter has no {needs} (--authors-python names another one)" if lacks else ""


def _run(python: str, kind: str, path: str, folder: Path) -> dict:
    """{"whole", "own", "writing"} in processor seconds, or {"sentence"} about why the program stopped."""
    report = folder / "seconds.json"
    report.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | ONE_THREAD
    command = [python, "-c", DRIVER, kind, path, str(report)]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"sentence": f"not timed: {path} takes longer than {TIMEOUT // 60} minutes"}
    if done.returncode or not report.exists():
        last = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
        return {"sentence": f"not timed: {path} stops here ({last[:200]})"}
    return {name: float(f"{value:.4g}") for name, value in json.loads(report.read_text(encoding="utf-8")).items()}


def _commit(checkout: Path) -> str:
    """The commit that is checked out, or nothing where git does not know."""
    if not (checkout / ".git").exists():
        return ""
    try:
        asked = subprocess.run(["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True)
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
