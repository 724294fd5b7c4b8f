"""The workbench: parameterised `runs`, `sweeps` over many of them, and the `commands` of `python -m lib`."""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "runs": (),
        "sweeps": (),
        "commands": (),
    },
)
