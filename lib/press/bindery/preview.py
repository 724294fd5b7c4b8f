"""`python -m lib preview PAGE`: the rendered page in a browser, brought up to date on every save.

A page whose code, claims or modules have changed is executed again, prose is only carried over; then the book is rendered, which
reads one document, and the browser loads it anew. What went wrong stands on top of the page. The server listens on the loopback
address only and serves nothing but `_build/html`.
"""

import contextlib
import http.server
import io
import json
import re
import threading
import time
import webbrowser
from functools import partial
from pathlib import Path

from lib.press import pages
from lib.press.bindery import building
from lib.press.errors import Problem
from lib.press.workbench import execution

LOOPBACK = "127.0.0.1"
PAUSE = 0.4  # seconds between two looks at the files
WAIT = 25.0  # seconds after which a browser asks again
# Asks which state is shown, and waits for the answer until it is another one; then loads the page anew, where it was.
RELOAD = """<script>
(function wait(seen) {
  fetch("/_preview?seen=" + seen).then(r => r.json()).then(now => {
    let box = document.getElementById("preview-problem");
    if (now.problem && !box) {
      box = document.body.insertBefore(document.createElement("pre"), document.body.firstChild);
      box.id = "preview-problem";
      box.style = "position:sticky;top:0;z-index:9999;margin:0;padding:1em;background:#fee;color:#600;white-space:pre-wrap";
    }
    if (box) { box.textContent = now.problem; box.hidden = !now.problem; }
    if (now.built != BUILT) location.reload(); else wait(now.state);
  }).catch(() => setTimeout(() => wait(seen), 1000));
})(-1);
</script>"""


class State:
    """What the browsers are shown: a number that grows with every change, the last build, and what went wrong since."""

    def __init__(self) -> None:
        self.number, self.built, self.problem, self.changed = 0, 0, "", threading.Condition()

    def set(self, built: bool, problem: str = "") -> None:
        """Tell the browsers that wait."""
        with self.changed:
            self.number, self.built, self.problem = self.number + 1, self.built + built, problem
            self.changed.notify_all()

    def after(self, seen: int) -> dict:
        """The state as soon as it is another one than `seen`, or when a browser has waited long enough."""
        with self.changed:
            self.changed.wait_for(lambda: self.number != seen, WAIT)
            return {"state": self.number, "built": self.built, "problem": self.problem}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book, with the script that reloads them added to pages."""

    def __init__(self, *arguments, state: State, **options) -> None:
        self.state = state
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        """Answer a browser: the state, a page with the script, or any other file."""
        if self.path.startswith("/_preview"):
            seen = re.search(r"seen=(-?\d+)", self.path)
            self.reply(json.dumps(self.state.after(int(seen[1]) if seen else -1)).encode(), "application/json")
            return
        path = Path(self.translate_path(self.path))
        if path.suffix == ".html" and path.is_file():
            script = RELOAD.replace("BUILT", str(self.state.built))
            self.reply(path.read_bytes().replace(b"</body>", script.encode() + b"</body>"), "text/html; charset=utf-8")
        else:
            super().do_GET()

    def reply(self, body: bytes, kind: str) -> None:
        """Send a body that no browser keeps."""
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Say nothing of every request."""


def serve(state: State, folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """A server of the rendered book on the loopback address, in a thread of its own; port 0 takes a free one."""
    try:
        server = http.server.ThreadingHTTPServer((LOOPBACK, port), partial(Handler, state=state, directory=str(folder)))
    except OSError as error:
        raise Problem(f"port {port} of {LOOPBACK} cannot be used ({error.strerror}); choose another one with --port") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def update(page: pages.Page, state: State) -> None:
    """Execute the page if it is stale, render it, and tell the browsers; a problem is shown on the page."""
    said = io.StringIO()
    try:
        failures = execution.bring_up_to_date([page])
        with contextlib.redirect_stderr(said):
            code = 0 if failures else building.render(page.root)
    except Problem as problem:  # a source that cannot be read, claims that are wrong: the next save may mend it
        failures, code = [str(problem)], 0
    problem = "\n\n".join(failures) or (said.getvalue().strip() if code else "")
    if problem:
        print(problem, flush=True)
    state.set(built=not failures, problem=problem)


def watched(page: pages.Page) -> str:
    """Changes when a file does that the page may be made from; the notebook is left out, which `update` writes itself."""
    folders = ("lib", "data", f"book/{page.name.split('/')[0]}")
    found = [path for folder in folders for path in (page.root / folder).glob("**/*") if "__pycache__" not in path.parts]
    found += [path for path in (page.root / "book").glob("*") if path.suffix in (".yml", ".bib", ".css")]
    found += [page.root / name for name in ("_toc.yml", "_config.yml")]
    states = []
    for path in found:
        with contextlib.suppress(OSError):
            if path.is_file() and path != page.notebook and not path.name.startswith("."):
                states.append(f"{path} {path.stat().st_mtime_ns}")
    return pages.digest("\n".join(sorted(states)))


def main(name: str, port: int = 0, browse: bool = True) -> int:
    """Show the page and keep it up to date until Ctrl-C."""
    page = pages.find(name)
    state = State()
    seen = watched(page)
    update(page, state)
    server = serve(state, building.output(page.root), port)
    address = f"http://{LOOPBACK}:{server.server_address[1]}/book/{page.name}.html"
    print(f"{address}\n(rendered anew on every save; Ctrl-C ends it)", flush=True)
    if browse:
        webbrowser.open(address)
    try:
        while True:
            time.sleep(PAUSE)
            now = watched(page)
            if now != seen:
                seen = now
                start = time.perf_counter()
                update(page, state)
                print(f"rendered again ({time.perf_counter() - start:.0f} s)", flush=True)
    finally:
        server.shutdown()
        server.server_close()
