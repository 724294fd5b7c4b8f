"""Deep linear networks: what they learn, when, and from which start.

Closed forms of learning in modes (`theory`) beside the chains of matrices that they predict (`chains`); gradient descent
for whole ensembles with a recording (`descent`), backpropagation, products of many small matrices and of tall ones for it
(`backpropagation`, `products`, `blocks`); how alike two learning curves are (`curves`); random draws that depend
on the seed alone (`draws`); shapes checked at the door (`shapes`). Items are columns, weights (..., out, in), losses half
the squared error, mean over items.

    from lib import linear
    from lib.data import tasks
    x, y = tasks.hierarchy(items=8)
    mode = linear.modes(*linear.correlations(x, y))
    print(linear.half_time(mode.s, mode.d, a0=1e-3))
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "theory": (
            "real",
            "Modes",
            "correlations",
            "modes",
            "mode_strength",
            "mode_strength_discrete",
            "discrete_rate",
            "time_to_fraction",
            "half_time",
            "deep_mode_velocity",
            "deep_mode_strength",
            "initial_strength",
            "mode_overlap",
            "loss_of_modes",
        ),
        "chains": ("small_weights", "product", "statistics_gradient", "statistics_loss", "train_on_statistics"),
        "descent": ("Adam", "GradientDescent", "Recording", "cosine", "crossing", "descend", "one_thread"),
        "adam": (),
        "backpropagation": (),
        "products": (),
        "blocks": (),
        "curves": (),
        "draws": ("LAWS", "Streams", "random_matrix"),
        "shapes": ("axes", "check_chain", "reals", "WrongAxes"),
    },
)
