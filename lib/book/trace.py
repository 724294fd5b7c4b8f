"""Inside a page's kernel: at exit, write which files of the repository the page used and what data it loaded.

Opened files are caught by an audit hook, which sees every open() of the process. Pages and claims are left out: they are
fingerprinted by their code and by the claims that concern the page. This package only watches, and is left out, too.
"""

import atexit
import json
import os
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIP = re.compile(r"^(\.|_|lib/book/|lib/__init__\.py$|book/|requirements\.txt$|.*__pycache__|.*\.pyc$)")


def start(report: str) -> None:
    """Watch from now on; the report is written when the kernel ends."""
    opened: set[str] = set()

    def hook(event, arguments):
        if event == "open" and isinstance(arguments[0], str | os.PathLike) and arguments[1] in ("r", "rb"):
            opened.add(os.fspath(arguments[0]))

    def finish():
        modules = {getattr(m, "__file__", None) for name, m in sys.modules.items() if name.split(".")[0] == "lib"}
        used = {Path(name).resolve() for name in opened | modules if name}
        inside = {path.relative_to(ROOT).as_posix() for path in used if path.is_relative_to(ROOT) and path.is_file()}
        data = getattr(sys.modules.get("lib.data.datasets"), "LOADED", {})
        about = {"files": sorted(name for name in inside if not SKIP.match(name)), "data": data, "seconds": time.process_time()}
        Path(report).write_text(json.dumps(about))

    sys.addaudithook(hook)
    atexit.register(finish)


def arguments(report: Path) -> list[str]:
    """Arguments of a kernel that is to watch itself."""
    line = f"from lib.book import trace; trace.start({str(report)!r}); del trace"
    return [f"--IPKernelApp.exec_lines={line}", "--IPKernelApp.log_level=ERROR"]  # no remarks about loopback's encryption
