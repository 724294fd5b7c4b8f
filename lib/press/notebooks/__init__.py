"""Pages in Jupyter. `pairing` keeps a page and its notebook in step: whichever was edited last wins, nothing is overwritten
silently. `plain` turns the book's directives into Markdown that every Jupyter shows, and back. `lab` opens a page in JupyterLab,
whose files go through `contents`. The `nursery` starts kernels and commands at once."""

from lib import door

__getattr__, __dir__, __all__ = door(__name__, {"pairing": (), "plain": (), "lab": (), "contents": (), "nursery": ()})
