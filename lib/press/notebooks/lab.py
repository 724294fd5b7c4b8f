"""`python -m lib lab`: a page in JupyterLab, paired with its .md, on this machine only."""

import json
import os
import sys
from urllib.parse import quote

from lib.press import environment, files, pages
from lib.press.notebooks import pairing
from lib.press.workbench import execution

NEWS = "@jupyterlab/apputils-extension:announcements"  # asks whether it may ask the network
MANAGER = "lib.press.notebooks.contents.Contents"


def command(page: pages.Page | None, root: str, port: int, browser: bool) -> list[str]:
    """The command that starts JupyterLab: loopback only, pages paired, nothing asked of the network."""
    where = f"/lab/tree/book/{quote(page.name)}.ipynb" if page else "/lab/tree/book"
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.contents_manager_class={MANAGER}",
        f"--ServerApp.open_browser={browser}",
        "--ServerApp.allow_remote_access=False",
        f"--LabApp.default_url={where}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    ]


def start(page: pages.Page | None, port: int, browser: bool) -> int:
    """Set JupyterLab up if it is not there yet, and become it; Ctrl-C ends it."""
    environment.need("lab")
    if page is not None:
        pairing.settle(page, print)  # an edit on both sides is refused here, in a sentence
        if not page.notebook.exists():
            print(f"{page.name} was never executed; Lab shows it without outputs")
    print(
        "JupyterLab listens on 127.0.0.1 only; what is saved there goes to the notebook and its .md. Ctrl-C ends it.", flush=True
    )
    root = page.root if page else pages.ROOT
    made = command(page, str(root), port, browser)
    config = root / "_build" / "lab"
    files.write_whole(config / "labconfig" / "page_config.json", json.dumps({"disabledExtensions": {NEWS: True}}))
    path = os.pathsep.join(filter(None, [str(config), os.environ.get("JUPYTER_CONFIG_PATH")]))
    os.chdir(root)
    os.execve(made[0], made, execution.kernel_environment(root, offline=False) | {"JUPYTER_CONFIG_PATH": path})
    return 0
