"""The book's machinery: what finds, executes, runs and counts its pages. Nothing here needs Sphinx, no page imports it.

pages       find a page, read its .md and its .ipynb
parameters  the typed parameters cell, presets, validation
freshness   what decides a page's outputs, and why they are stale
execute     run pages in fresh kernels and write their notebooks (nbclient)
trace       inside a kernel: which files did the page use?
pictures    smaller PNGs for notebooks that are kept in git
runs        one run with other parameters, its row and provenance (papermill); record it
sweep       many runs over a grid (Dask: this machine, a scheduler, Slurm)
results     runs as a table, beside the book; other seeds
verdicts    which verdict counts, totals, distance from the bound
build       execute what is stale, render with Jupyter Book, README's score
"""
