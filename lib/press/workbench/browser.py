"""The Chromium that the browser tests drive: found, or installed where that is allowed."""

import os
import shutil
import subprocess

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium-headless-shell", "chromium")  # the first has no window to draw: three quarters of the time
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NONE_FOUND = "No Chromium was found: install it (Debian, Ubuntu: `apt install chromium`) or set CHROMIUM to its path."


def find() -> "str | None":
    """Path of a Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None)


def ensure() -> "str | None":
    """A Chromium's path, installing the distribution's one where we are allowed to (root, apt); else None."""
    if find() is None and not os.environ.get("CHROMIUM") and shutil.which("apt-get") and os.geteuid() == 0:
        print("installing the distribution's Chromium for the browser tests …", flush=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        subprocess.run(["apt-get", "update", "-qq"], env=env, **quiet)
        for package in PACKAGES:
            if subprocess.run(["apt-get", "install", "-y", "-qq", package], env=env, **quiet).returncode == 0:
                break
    return find()
