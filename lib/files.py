"""Reading and writing the book's files: whatever is wrong with one is a sentence that names it."""

import contextlib
import difflib
import functools
import json
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml


class Problem(Exception):
    """Something wrong that one sentence explains; every command prints that sentence and ends with status 2."""


def shown(path: Path) -> str:
    """A path as a reader of the book knows it: from `book/` on, or the file's name."""
    parts = path.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("book") :]) if "book" in parts else path.name


def nearest(name: str, known: Iterable[str]) -> str:
    """'; did you mean …?' for a name that is not known, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"; did you mean '{near[0]}'?" if near else ""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{shown(path)} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise Problem(f"{shown(path)} cannot be read ({error.strerror})") from None


def read_json(path: Path, kind: type | None = None):
    """The content of a JSON file, checked against a msgspec type if one is given."""
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise Problem(f"{shown(path)} is not whole JSON ({error})") from None
    if kind is not None:
        convert(content, kind, shown(path))
    return content


class _Loader(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
    """Every scalar stays text, as it was written, and no key may stand twice in a mapping."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"'{key.value}' stands there twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path):
    """The content of a YAML file; all values are text."""
    return _yaml(read_text(path), path)


@functools.lru_cache(maxsize=64)
def _yaml(text: str, path: Path):
    """Parsed once as long as the text is the same: a build asks hundreds of times for a paper's claims."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark, words = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "it cannot be read"
        raise Problem(f"{shown(path)} is not valid YAML ({f'line {mark.line + 1}: ' if mark else ''}{words})") from None


def convert(content, kind: type, where: str):
    """`content` as a msgspec type; a Problem says which field of `where` is wrong."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise Problem(f"{where}: {error}".replace("`", "'")) from None


def write_whole(path: Path, text: str) -> None:
    """Write in one step: nobody ever reads half a file, and a full disk leaves the old one as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise Problem(f"{shown(path)} could not be written ({error.strerror}); what was there before is untouched") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
