"""The press: everything that makes a book out of pages, and nothing of the science.

`claims` and verdicts, `parameters` and `pages` with their freshness, the `environment` that they need, `offline`, `plots`.
Two rooms of its own: `workbench` (runs, sweeps, commands) and `rendering` (Sphinx directives).
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "claims": (),
        "pages": (),
        "parameters": (),
        "environment": (),
        "offline": (),
        "plots": (),
        "workbench": (),
        "rendering": (),
    },
)
