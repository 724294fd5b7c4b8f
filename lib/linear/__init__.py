"""Deep linear networks (Saxe, McClelland and Ganguli 2014, and all five papers): what they learn, and when.

Closed forms of learning in modes (`theory`) beside the chains of matrices that they predict (`chains`); gradient descent
or Adam for whole ensembles with a recording (`descent`); how alike two learning curves are (`curves`); random draws that
depend on the seed alone (`draws`); shapes checked where users enter (`shapes`). Items are columns,
weights (..., out, in), losses half the squared error, mean over items.

    from lib import linear
    from lib.data import tasks
    x, y = tasks.hierarchy(items=8)
    mode = linear.modes(*linear.correlations(x, y))
    print(linear.half_time(mode.s, mode.d, a0=1e-3))

The networks of this library are many and small, and threads would wait for each other longer than they work. So importing it
sets torch and NumPy to one thread, unless OMP_NUM_THREADS is set.
"""

import os

import torch
from threadpoolctl import threadpool_limits

from lib.linear import chains, curves, descent, draws, shapes, theory
from lib.linear.chains import small_weights, train_on_statistics
from lib.linear.descent import Adam, GradientDescent, Recording, cosine, crossing, descend
from lib.linear.draws import LAWS, Streams, random_matrix
from lib.linear.shapes import WrongAxes, as_array, axes, check_chain, matmul, reals
from lib.linear.theory import (
    Modes,
    correlations,
    deep_mode_strength,
    deep_mode_velocity,
    discrete_rate,
    half_time,
    initial_strength,
    loss_of_modes,
    mode_overlap,
    mode_strength,
    mode_strength_discrete,
    modes,
    real,
    time_to_fraction,
)

__all__ = ["theory", "Modes", "correlations", "modes", "mode_strength", "mode_strength_discrete", "discrete_rate", "real"]
__all__ += ["time_to_fraction", "half_time", "deep_mode_velocity", "deep_mode_strength", "initial_strength", "mode_overlap"]
__all__ += ["loss_of_modes", "chains", "small_weights", "train_on_statistics", "curves"]
__all__ += ["descent", "Adam", "GradientDescent", "Recording", "cosine", "crossing", "descend"]
__all__ += ["draws", "LAWS", "Streams", "random_matrix"]
__all__ += ["shapes", "WrongAxes", "as_array", "axes", "check_chain", "matmul", "reals"]

if "OMP_NUM_THREADS" not in os.environ:
    torch.set_num_threads(1)
    threadpool_limits(1)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for libraries that are loaded later: SciPy has its own
