"""What this machine can do at best on one core: matrix products in each precision, and bytes to and from memory."""

import math
import os
import platform
from pathlib import Path

import torch

from lib.press.bench.record import PRECISIONS
from lib.press.bench.timing import Effort, Pair, processor_seconds

SIDE = 1024  # of the square matrices of the product: large enough for the library's best rate
NUMBERS = 2**25  # of each of three arrays, 128 MB in float32: more than any cache


def peaks(effort: Effort) -> dict[str, float]:
    """{"float32", "float64": operations a second of a product of matrices; "memory": bytes a second}, the best of all turns.

    Memory is the traffic of a + b → c over arrays that fit into no cache, one number read from each of two, one written.
    """
    best = {}
    for name in PRECISIONS:
        a, b = torch.randn(2, SIDE, SIDE, dtype=getattr(torch, name))
        out = torch.empty_like(a)
        torch.mm(a, b, out=out)
        seconds = min(processor_seconds(lambda a=a, b=b, out=out: torch.mm(a, b, out=out)) for _ in range(2 * effort.turns))
        best[name] = 2 * SIDE**3 / seconds
    a, b, c = (torch.ones(NUMBERS) for _ in range(3))
    seconds = min(processor_seconds(lambda: torch.add(a, b, out=c)) for _ in range(effort.turns))
    best["memory"] = 12 * NUMBERS / seconds
    return {name: float(f"{value:.4g}") for name, value in best.items()}


def share(pair: Pair, precision: str, seconds: float, best: dict[str, float]) -> dict | None:
    """How much of this machine's best a program reaches: {"share", "bound"}; None where nothing was counted.

    At best it takes as long as its products at the rate of large matrices, or as its traffic at the rate of memory,
    whichever is longer ("arithmetic" or "memory"); the share is that time over the measured one.
    """
    arithmetic, memory = pair.flops / best.get(precision, math.inf), pair.bytes / best["memory"]
    if not arithmetic and not memory:
        return None
    bound = "arithmetic" if arithmetic >= memory else "memory"
    return {"share": float(f"{max(arithmetic, memory) / seconds:.3g}"), "bound": bound}


def description() -> dict[str, str]:
    """What was measured on: processor, Python, torch, the vector instructions that torch uses, and how busy it was before."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    capability = torch.backends.cpu.get_cpu_capability()
    about = {"processor": model, "python": platform.python_version(), "torch": torch.__version__, "instructions": capability}
    return about | {"load": load()}


def load() -> str:
    """How many processes wanted a core in the last minute, and how many cores there are: '0.3 on 2 cores'."""
    wanted = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return f"{wanted} on {os.cpu_count()} cores"
