"""Early linearisation: what a constant input does to ReLU units and to the modes of two-layer networks.

A bias is a constant input. `with_constant` appends it to the data, so that a network's first matrix carries the biases
in its last column and everything else (linear theory, gradients, gates) needs no special case; a constant of zero is a
network without biases. The networks are those of `relu.networks`: weights [w1 (..., hidden, features), w2 (..., outputs,
hidden)], x (..., features, items). The paper sums its loss over items: train with reduction="sum".

`constant`: the constant and its mode. `units`: what single units do, and which solution they end up with. `prediction`: the
learning curve of a ReLU network in closed form, from its initial weights. `onset`: how strong a constant must be.
`tangent`: the other linearisation, in the weights around where they start, which is the kernel limit.
Bias-mediated early linearization, Sections 4 to 6 and Appendices B, C and F.

    from lib import linear, relu
    from lib.data import tasks
    from lib.relu import linearization
    x, y = tasks.hierarchy(8)
    x = linearization.with_constant(x, 1.0)
    weights = relu.initial_weights((9, 64, 15), std=2e-4, seeds=3)
    mode = linear.modes(*linear.correlations(x, y))
    print(linearization.rectified_strength(weights, mode) / linear.initial_strength(*weights, mode.u, mode.v))
"""

from lib.relu.linearization import constant, onset, prediction, tangent, units
from lib.relu.linearization.constant import BiasMode, bias_mode, bias_ratio, input_spectrum, mode_strengths, with_constant
from lib.relu.linearization.onset import Direction, early_directions, predicted_on, threshold, typical_speed, without_bias
from lib.relu.linearization.prediction import delay, delay_as_printed, growing_part, predicted_loss, rectified_strength
from lib.relu.linearization.units import at, keep_units, kinks, linear_preference, linearisation_time

__all__ = ["constant", "with_constant", "input_spectrum", "BiasMode", "bias_mode", "mode_strengths", "bias_ratio"]
__all__ += ["units", "kinks", "linearisation_time", "at", "keep_units", "linear_preference"]
__all__ += ["prediction", "growing_part", "rectified_strength", "predicted_loss", "delay", "delay_as_printed"]
__all__ += ["onset", "Direction", "early_directions", "typical_speed", "without_bias", "predicted_on", "threshold"]
__all__ += ["tangent"]
