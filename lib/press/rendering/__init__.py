"""Rendering: the Sphinx directives that make boxes and tables out of claims and executed pages (`book`)."""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "book": (),
    },
)
