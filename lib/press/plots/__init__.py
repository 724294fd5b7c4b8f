"""Plots: one style for all figures of the book, and what they are drawn with.

from lib.press import plots
fig, ax = plots.panels(height=2)
plots.theory(ax, [0, 1, 2], [0, 0.5, 1])
ax.plot([0, 1, 2], [0.1, 0.5, 0.9], color=plots.COLOURS["relu"], label="ReLU")
plots.label_lines(ax)
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "style": ("COLOURS", "SEQUENCE", "WIDTH", "ink"),
        "drawing": ("panels", "numpy", "theory", "band", "label_lines", "note", "letters", "image", "plt"),
        "pictures": (),
    },
)
