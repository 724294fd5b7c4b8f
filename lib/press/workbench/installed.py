"""What is installed, as the names of folders tell it: a hundred times as fast as to read what every package says of itself.

Like `press.environment`, which asks this before anything is set up, it uses only the standard library.
"""

import os
import sys

ENDING = ".dist-info"


def in_doubt(wanted: "dict[str, str]") -> "dict[str, str]":
    """Of the pins {name: version} those that no folder's name confirms; 2.13.0+cpu confirms 2.13.0."""
    seen = versions()
    return {name: version for name, version in wanted.items() if seen.get(plain(name), "").split("+")[0] != version}


def versions() -> "dict[str, str]":
    """Name -> version of installed packages; "" for one that has two folders in one place, or half of one."""
    found = {}
    for place in sys.path:
        try:
            inside = [name for name in os.listdir(place or ".") if name.endswith(ENDING)]
        except OSError:  # no folder
            continue
        here = {}
        for folder in inside:
            name, _, version = folder[: -len(ENDING)].partition("-")
            whole = plain(name) not in here and os.path.exists(os.path.join(place, folder, "METADATA"))
            here[plain(name)] = version if whole else ""
        found = {**here, **found}  # the first place counts
    return found


def plain(name: str) -> str:
    """A package's name as all spell it."""
    return name.lower().replace("_", "-").replace(".", "-")
