"""A page in a real JupyterLab, in a real browser: readable, paired, on this machine only."""

import difflib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import sync_playwright

from lib.press import environment, pages
from lib.press.notebooks import lab, nursery
from lib.press.workbench import browser as installed

WORDS = "Written in Lab."


def test_the_set_is_exact_and_beside_the_books_own_pins():
    wanted = environment.named_set("lab")
    assert wanted["jupyterlab"] and all(re.fullmatch(r"[0-9][\w.]*", version) for version in wanted.values())
    same = {name.lower().replace("_", "-") for name in environment.pins()} & {name.lower().replace("_", "-") for name in wanted}
    assert not same, f"in requirements.txt already: {same}"


def test_the_command_stays_on_this_machine():
    made = lab.command(pages.find("deep_linear/modes"), "/somewhere", 8888, browser=False)
    assert "--ServerApp.ip=127.0.0.1" in made and "--ServerApp.allow_remote_access=False" in made
    assert f"--ServerApp.contents_manager_class={lab.MANAGER}" in made
    assert "--LabApp.default_url=/lab/tree/book/deep_linear/modes.ipynb" in made
    assert not any("token" in part or "password" in part for part in made)  # Jupyter's own: a new token each time


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter that has the book's packages and, in an environment of its own, the set 'lab'."""
    home = tmp_path_factory.mktemp("lab") / "venv"
    venv.create(home, with_pip=False)
    inside = sysconfig.get_path("purelib", vars={"base": str(home)})
    Path(inside, "book.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pins = [f"{name}=={version}" for name, version in environment.named_set("lab").items()]
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin/python"), "install", "--quiet", "--no-deps", *pins]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        pytest.skip(f"JupyterLab cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return home / "bin" / "python"


@pytest.fixture
def server(python, executed, tmp_path, nursed):
    """`python -m lib lab paper/one` in a small repository; yields (repository, process, address)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "RACING", "JUPYTER"))} | folders
    executed.edit("book/paper/one.md", "Some prose.", "Some prose.\n\n```{claims}\n```")
    with nursery.used(address=nursed):
        assert executed.run("execute").returncode == 0
    command = [str(python), "-m", "lib", "lab", "paper/one", "--no-browser", "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=executed.root,
        env=env | {"PYTHONPATH": str(executed.root)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said, address = [], None
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\S+", line):
            address = found[0]
            break
    threading.Thread(target=lambda: said.extend(process.stdout), daemon=True).start()  # lest the pipe fill up
    try:
        assert address, "".join(said)[-2000:]
        began = time.monotonic()
        while not answers("127.0.0.1", port) and time.monotonic() - began < 60:  # the address is said before anybody listens
            time.sleep(0.2)
        yield executed, process, address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def answers(host, port):
    """Whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def lines_changed(before, after):
    return sum(line[0] in "+-" for line in difflib.ndiff(before.splitlines(), after.splitlines()))


def test_a_page_is_opened_read_edited_and_saved_in_lab(server):
    if installed.find() is None:
        pytest.skip(installed.NONE_FOUND)
    repository, process, address = server
    port = int(re.search(r":(\d+)/", address)[1])
    others = {one.address for many in psutil.net_if_addrs().values() for one in many if one.family == socket.AF_INET} - {
        "127.0.0.1"
    }
    assert answers("127.0.0.1", port) and not any(answers(other, port) for other in others)
    before = {ending: repository.read(f"book/paper/one.{ending}") for ending in ("md", "ipynb")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed.find(), args=list(installed.FLAGS))
        tab, outside = browser.new_context(viewport={"width": 1300, "height": 1000}).new_page(), []
        near = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
        tab.on("request", lambda request: None if request.url.startswith(near) else outside.append(request.url))
        tab.goto(address)
        cell = tab.locator(".jp-MarkdownCell").first
        cell.locator("li").first.wait_for(timeout=120_000)
        shown = cell.locator(".jp-RenderedMarkdown").inner_text()
        assert "Six is twice three. (Eq. 1): reproduced" in shown and "{claims}" not in shown and "<!--" not in shown
        cell.click()
        tab.keyboard.press("Enter")
        cell.locator(".cm-content").wait_for(timeout=30_000)
        tab.keyboard.press("Control+End")
        tab.keyboard.type(WORDS)
        tab.keyboard.press("Control+s")
        page, began = pages.Page("paper/one", repository.root), time.monotonic()
        both = ("book/paper/one.md", "book/paper/one.ipynb")
        while not all(WORDS in repository.read(name) for name in both) and time.monotonic() - began < 90:
            time.sleep(0.3)
        assert "Would you like to get notified" not in tab.locator("body").inner_text()
        browser.close()
    after = {ending: repository.read(f"book/paper/one.{ending}") for ending in ("md", "ipynb")}
    assert f"```{{claims}}\n```\n\n{WORDS}\n" in after["md"] and lines_changed(before["md"], after["md"]) == 2  # and a blank line
    old, new = (json.loads(side["ipynb"]) for side in (before, after))
    assert pages.inputs(old)[1:] == pages.inputs(new)[1:] and pages.outputs_digest(old) == pages.outputs_digest(new)
    assert pages.edited(page) == "" and pages.stale(page) == repository.reasons("paper/one") == []
    assert outside == []
    assert not list((repository.root / "book").glob("**/.ipynb_checkpoints"))


def test_lab_refuses_to_save_over_an_edit_made_elsewhere(server):
    """Through the server's own interface, as Lab uses it."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    repository, _, address = server
    root, _, token = address.partition("/lab")[0], *address.rpartition("token=")[1:]
    ask = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    place = f"{root}/api/contents/book/paper/one.ipynb"
    model = json.load(urlopen(Request(f"{place}?type=notebook&content=1", headers=ask)))
    repository.edit("book/paper/one.md", "Some prose.", "Prose from elsewhere.")
    model["content"]["cells"][0]["source"] += f"\n\n{WORDS}"
    body = json.dumps({key: model[key] for key in ("type", "format", "content")}).encode()
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(place, data=body, headers=ask, method="PUT"))
    assert refused.value.code == 409
    assert "book/paper/one.md was edited elsewhere since this notebook was opened" in json.load(refused.value)["message"]
    assert "Prose from elsewhere." in repository.read("book/paper/one.md") and WORDS not in repository.read("book/paper/one.md")
    again = json.load(urlopen(Request(f"{place}?type=notebook&content=1", headers=ask)))
    assert "Prose from elsewhere." in again["content"]["cells"][0]["source"]
    again["content"]["cells"][0]["source"] += f"\n\n{WORDS}"
    body = json.dumps({key: again[key] for key in ("type", "format", "content")}).encode()
    assert urlopen(Request(place, data=body, headers=ask, method="PUT")).status == 200
    assert "Prose from elsewhere." in repository.read("book/paper/one.md") and WORDS in repository.read("book/paper/one.md")
