"""Set up what the book needs before anything else is imported: a virtual environment with the exact pins, a browser.

Only the standard library is used here, so that `python -m lib` works on a bare machine.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS = ROOT / "requirements.txt"
VENV = ROOT / ".venv"


class Missing(Exception):
    """Something that the book needs is not there; the message says in one sentence what, and what to do."""


def pins() -> dict[str, str]:
    """Name -> exact version of every line of requirements.txt."""
    lines = (line.split("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines())
    return dict(line.split("==") for line in lines if line)


def pins_hash() -> str:
    """Changes exactly when a pin changes (comments and order of lines do not count)."""
    return hashlib.sha256(repr(sorted(pins().items())).encode()).hexdigest()[:16]


def unmet() -> list[str]:
    """Pins that the running interpreter does not satisfy, as 'name==version (have …)'."""
    problems = []
    for name, version in pins().items():
        try:
            have = metadata.version(name).split("+")[0]  # 2.13.0+cpu satisfies 2.13.0
        except metadata.PackageNotFoundError:
            have = None
        if have != version:
            problems.append(f"{name}=={version} (have {have or 'none'})")
    return problems


def ensure(arguments: list[str]) -> None:
    """Return when the running interpreter satisfies the pins; otherwise set up `.venv` and start over inside it."""
    stamp = VENV / "pins"
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if inside and stamp.exists() and stamp.read_text() == pins_hash():
        return
    if not inside and not unmet():  # a container, a cluster module, a notebook service: use what is there
        return
    if not inside:
        if sys.version_info < (3, 11):  # noqa: UP036  (whoever starts this may have an older one)
            raise Missing(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: run `python3.11 -m lib …`.")
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
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        [*pip, "-r", str(REQUIREMENTS)],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    )
    for command in steps:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            last = [line for line in done.stdout.splitlines() if "ERROR" in line][-1:] or done.stdout.splitlines()[-1:]
            raise Missing(
                "The packages could not be installed (is there a network, and room on the disk?): "
                f"{' '.join(last).strip()} — try again with `{' '.join(command)}`."
            )


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NO_BROWSER = "No Chromium was found: install it (Debian, Ubuntu: `apt install chromium`) or set CHROMIUM to its path."


def browser() -> str | None:
    """Path of a Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def ensure_browser() -> str | None:
    """A Chromium's path, installing the distribution's one where we are allowed to (root, apt); else None."""
    if browser() is None and not os.environ.get("CHROMIUM") and shutil.which("apt-get") and os.geteuid() == 0:
        print("installing the distribution's Chromium for the browser tests …", flush=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=env, **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], env=env, **quiet)
    return browser()
