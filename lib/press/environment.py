"""Set up what the book needs before anything else is imported: a virtual environment with the exact pins, a browser.

Only the standard library is used here, so that `python -m lib` works on a bare machine. Annotations are quoted, so that
old interpreters can read this file.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from lib.press.errors import Problem

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS = ROOT / "requirements.txt"
VENV = ROOT / ".venv"


class Missing(Problem):
    """Something that the book needs is not there; the message says in one sentence what, and what to do."""


def pins() -> "dict[str, str]":
    """Name -> exact version of every line of requirements.txt."""
    try:
        lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise Missing(f"{REQUIREMENTS.name} cannot be read; `git checkout -- {REQUIREMENTS.name}` brings it back.") from None
    found = {}
    for number, line in enumerate(lines, 1):
        pin = line.split("#")[0].strip()
        name, sign, version = pin.partition("==")
        if pin and not (sign and name.strip() and version.strip()) or "==" in version:
            raise Missing(f"{REQUIREMENTS.name}, line {number}: '{pin}' is not an exact pin NAME==VERSION.")
        if pin:
            found[name] = version
    return found


def pins_hash() -> str:
    """Changes exactly when a pin changes (comments and order of lines do not count)."""
    return hashlib.sha256(repr(sorted(pins().items())).encode()).hexdigest()[:16]


def named_set(name: str) -> "dict[str, str]":
    """Name -> exact version of what one command needs beyond requirements.txt: an optional set of pyproject.toml."""
    import tomllib  # not there before Python 3.11

    try:
        known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        return {package: version for package, _, version in (pin.partition("==") for pin in known[name])}
    except (OSError, ValueError, KeyError, AttributeError):
        raise Missing(f"pyproject.toml has no set '{name}' of packages; `git checkout -- pyproject.toml` may help.") from None


def need(name: str) -> None:
    """Have the named set: return at once when its pins are met, otherwise install them beside the book's own, which stay."""
    import importlib

    wanted = named_set(name)
    if not unmet(wanted):
        return
    print(f"installing what this needs beyond the book (the set '{name}', once): {', '.join(wanted)} …", flush=True)
    pin = [f"{package}=={version}" for package, version in wanted.items()]
    pip_install(Path(sys.executable), "--constraint", str(REQUIREMENTS), *pin)
    importlib.invalidate_caches()


def unmet(wanted: "dict[str, str] | None" = None) -> "list[str]":
    """Pins (the book's, if none are given) that the running interpreter does not satisfy, as 'name==version (have …)'."""
    from importlib import metadata  # not there before Python 3.8

    from lib.press.workbench import installed

    problems = []
    for name, version in installed.in_doubt(pins() if wanted is None else wanted).items():
        try:
            have = (metadata.version(name) or "").split("+")[0]  # 2.13.0+cpu satisfies 2.13.0
        except (metadata.PackageNotFoundError, OSError):  # an empty folder of a package, where importlib_metadata takes part
            have = None
        if have != version:
            problems.append(f"{name}=={version} (have {have or 'none'})")
    return problems


def ensure(arguments: "list[str]") -> None:
    """Return when the running interpreter satisfies the pins; otherwise set up `.venv` and start over inside it."""
    stamp = VENV / "pins"
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if inside and stamp.exists() and stamp.read_text() == pins_hash():
        return
    if not inside and not unmet():  # a container, a cluster module, a notebook service: use what is there
        return
    if not inside:
        python = create_venv()
        if not (stamp.exists() and stamp.read_text() == pins_hash()):
            install(python)
            stamp.write_text(pins_hash())
        os.chdir(ROOT)
        os.execv(python, [str(python), "-m", "lib", *arguments])
    install(Path(sys.executable))
    stamp.write_text(pins_hash())


def create_venv() -> Path:
    """The interpreter of `.venv`, which is created if it is not there."""
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if python.exists():
        return python
    try:
        import ensurepip  # noqa: F401  (Debian ships Python without it; venv then fails half-way)
        import venv
    except ImportError:
        raise Missing("Python's venv module is missing: install it (Debian, Ubuntu: `apt install python3-venv`).") from None
    print(f"creating the virtual environment {VENV.name} …", flush=True)
    venv.create(VENV, with_pip=True)
    return python


def install(python: Path) -> None:
    """Install the pins and, in editable form, `lib` itself."""
    print(f"installing {len(pins())} pinned packages (once; a few minutes) …", flush=True)
    pip_install(python, "-r", str(REQUIREMENTS))
    pip_install(python, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def pip_install(python: Path, *arguments: str) -> None:
    """`pip install` for an interpreter, showing how far it is; where it fails, the sentence has pip's last word."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *arguments]
    total = len(pins()) if "-r" in arguments else sum("==" in argument for argument in arguments)
    lines = []
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        show = Progress(total)
        for line in process.stdout:
            lines.append(line)
            show(line)
        show.end()
    if process.returncode:
        last = [line for line in lines if "ERROR" in line][-1:] or lines[-1:]
        raise Missing(
            "The packages could not be installed (is there a network, and room on the disk?): "
            f"{' '.join(last).strip()} — try again with `{' '.join(command)}`."
        )


class Progress:
    """What pip says, as one line that counts packages: '37 of 131: torch'; in a log, every twentieth of them has a line."""

    def __init__(self, total: int, stream=None):
        self.total, self.seen, self.stream = total, 0, stream or sys.stdout
        self.live = self.stream.isatty()

    def __call__(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == "Collecting" and self.seen < self.total:
            self.seen += 1
            name = rest.split("==")[0].split(" ")[0]
            self.say(f"  {self.seen} of {self.total}: {name}", self.seen % 20 == 0 or self.seen == self.total)
        elif line.startswith("Installing collected packages"):
            number = line.count(",") + 1
            self.say(f"  unpacking {number} package{'' if number == 1 else 's'} (about a minute) …", number > 3)

    def say(self, text: str, worth: bool) -> None:
        """On a terminal in place of the line before; in a log only what is `worth` a line."""
        if self.live:
            self.stream.write(f"\r\033[K{text}")
        elif worth:
            self.stream.write(text + "\n")
        self.stream.flush()

    def end(self) -> None:
        """Leave the terminal's line empty."""
        if self.live:
            self.stream.write("\r\033[K")
            self.stream.flush()
