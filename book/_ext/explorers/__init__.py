"""Explorers: figures that compute in the reader's browser, each a twin of functions of `lib` that a test holds it against.

`bokeh_parts` has what they are built from, `random_numbers` the numbers that browsers draw as well, `directive` puts one on a
page. The others are the explorers themselves; their scripts are in book/_static/explorers.
"""

EXPLORERS = ("modes", "routing", "separability", "contexts", "threshold", "functions", "kinks")
