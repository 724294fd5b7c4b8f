"""Explorers: figures that compute in the reader's browser, each a twin of functions of `lib` that a test holds it against.

`bokeh_parts` has what they are built from, `directive` puts one on a page. The others are the explorers themselves; their scripts
are in book/_static/explorers, and what these should compute is in tests/ext/explorer_twins.py.
"""

# Each with the figure of its page that stands in its place on paper and without scripts.
EXPLORERS = {
    "modes": "fig-modes-strengths",
    "routing": "fig-routing-loss",
    "separability": "fig-separability-times",
    "contexts": "fig-contexts-loss",
    "threshold": "fig-threshold-phases",
    "functions": "fig-functions-images",
    "kinks": "fig-expressivity-hat",
}
