"""Files that are read or written whole; whatever is wrong with one is a sentence that names it."""

import contextlib
import functools
import json
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

from lib.press.errors import Problem


def shown(path: Path) -> str:
    """A path as a reader of the book knows it: from `book/` on, or the file's name."""
    parts = path.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("book") :]) if "book" in parts else path.name


def read_text(path: Path, error: type[Problem] = Problem) -> str:
    """The text of a file in UTF-8; what is wrong with it is an `error` that names the file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as trouble:
        raise error(f"{shown(path)} is not UTF-8 text (byte {trouble.start})") from None
    except OSError as trouble:
        raise error(f"{shown(path)} cannot be read ({trouble.strerror})") from None


def read_json(path: Path, error: type[Problem] = Problem):
    """The content of a JSON file; what is wrong with it is an `error` that names the file."""
    try:
        return json.loads(read_text(path, error))
    except json.JSONDecodeError as trouble:
        raise error(f"{shown(path)} is not whole JSON (line {trouble.lineno}: {trouble.msg})") from None
    except (ValueError, RecursionError):
        raise error(f"{shown(path)} is not JSON that can be read") from None


def read_yaml(path: Path, error: type[Problem] = Problem):
    """The content of a YAML file, not to be changed; what is wrong with it is an `error` that names the file."""
    return _yaml(read_text(path, error), path, error)


@functools.lru_cache(maxsize=64)
def _yaml(text: str, path: Path, error: type[Problem]):
    """Read once as long as the text is the same: one command may ask hundreds of times for a paper's claims."""
    import yaml

    try:
        return yaml.load(text, Loader=quick_loader(text))
    except yaml.YAMLError as trouble:
        mark, words = getattr(trouble, "problem_mark", None), getattr(trouble, "problem", None) or "it cannot be read"
        raise error(f"{shown(path)} is not YAML ({f'line {mark.line + 1}: ' if mark else ''}{words})") from None
    except (ValueError, RecursionError) as trouble:  # a date that does not exist; a thousand brackets
        raise error(f"{shown(path)} is not YAML ({trouble})") from None


def quick_loader(text: str):
    """PyYAML's loader in C, which is eight times as fast, unless the text is nested so deeply that it would crash there."""
    import yaml

    indented = max((len(line) - len(line.lstrip()) + line.count("- ") for line in text.splitlines()), default=0)
    deep = text.count("[") + text.count("{") + indented
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader) if deep < 5000 else yaml.SafeLoader


def write_whole(path: Path, text: str, error: type[Problem] = Problem) -> None:
    """Write in one step: nobody ever reads half a file, and a full disk leaves the old one as it was."""
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as trouble:
        raise error(f"{shown(path)} could not be written ({trouble.strerror}); what was there before is untouched") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch():
    """A temporary folder that ends with this block; what killed processes of this machine left behind goes first."""
    mark = f"racing-{platform.node()}-"
    for old in Path(tempfile.gettempdir()).glob(f"{mark}*"):
        owner = re.match(r"(\d+)-", old.name[len(mark) :])
        if owner and not alive(int(owner[1])):
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{mark}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def tidy(folder: Path) -> None:
    """Remove what processes of this machine that are gone had begun to write in a folder."""
    for left in folder.glob(f".*.{platform.node()}.*.tmp"):
        if not alive(int(owner[1]) if (owner := re.search(r"\.(\d+)\.tmp$", left.name)) else 0):
            with contextlib.suppress(OSError):
                left.unlink()


def alive(pid: int) -> bool:
    """Whether a process with this number is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
