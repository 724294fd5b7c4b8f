"""Execution of pages in fresh kernels, several at a time, and notebooks whose rerun changes no byte."""

import asyncio
import atexit
import copy
import json
import os
import re
import tempfile
from pathlib import Path

from lib.book import freshness, pages, pictures, trace
from lib.book.pages import Page
from lib.files import Problem, read_json, write_whole

TIMEOUT = 1800  # seconds that one cell may take
SENTENCES = ("ClaimError", "NotMeasured", "VerdictChanged", "Problem", "DamagedFile", "MissingFile")  # need no traceback


def kernel_environment(root: Path, offline: bool = True) -> dict:
    """Environment of a page's kernel: one thread for numerical libraries, this `lib`, no network.

    With the book's own parameters (`offline`), glibc keeps freed arrays: getting them again takes up to a tenth of a kernel's
    time. At larger sizes that would multiply the memory.
    """
    own = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    own |= {"PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))}
    own |= {"PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    if offline:
        own |= {"RACING_OFFLINE": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
    return os.environ | own


async def execute(page: Page) -> float:
    """Run the page in a fresh kernel and write its notebook; nothing is written when it fails.

    Returns processor seconds, which are the same on a busy machine.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    refuse_if_edited(page)
    notebook = pages.source(page)
    before = page.notebook.read_bytes() if page.notebook.exists() else b""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "used.json")
        where = {"metadata": {"path": str(page.markdown.parent)}}
        options = {"timeout": TIMEOUT, "kernel_name": "python3", "resources": where, "extra_arguments": trace.arguments(report)}
        client = NotebookClient(notebook, **options)
        try:
            await client.async_execute(env=kernel_environment(page.root))
        except CellExecutionError as error:
            raise Problem(f"{page.name} failed: {told(error)}") from None
        except CellTimeoutError:
            raise Problem(f"{page.name} failed: a cell took longer than {TIMEOUT} seconds") from None
        except (DeadKernelError, AssertionError):  # nbclient cannot shut down a kernel that is gone
            raise Problem(f"{page.name} failed: its kernel died (was it killed, or out of memory?)") from None
        except (RuntimeError, OSError) as error:  # no kernel, no loopback
            raise Problem(f"{page.name} failed: its kernel does not answer ({' '.join(str(error).split())[:200]})") from None
        finally:
            atexit.unregister(client._cleanup_kernel)  # the kernel is gone by now; at exit nbclient would trip over it
        if not report.exists():
            raise Problem(f"{page.name}: the kernel ended without reporting what it used")
        used = read_json(report)
    noise = noisy(notebook)
    if noise:
        raise Problem(f"{page.name}: {noise}")
    if before and page.notebook.read_bytes() != before:
        raise Problem(f"{page.name}: {page.notebook.name} was saved while the page ran, and stays as it is; try again")
    write(page, notebook, freshness.fingerprint(page, used["files"]) | {"code": freshness.code_digest(notebook)})
    return used["seconds"]


def refuse_if_edited(page: Page) -> None:
    """A Problem when the notebook's inputs were edited since it was written and its .md does not say the same.

    Decided by content, never by the times of files. A damaged notebook counts as not edited: it is made again.
    """
    try:
        notebook = pages.stored(page)
    except Problem:
        return
    racing = (notebook or {"metadata": {}})["metadata"].get("racing") or {}
    if notebook is None or pages.paired(page) or racing.get("pair") in (None, pages.inputs_digest(notebook)):
        return
    if racing["pair"] != pages.inputs_digest(pages.source(page)):  # jupytext would keep the newer file's edit alone
        raise Problem(
            f"{page.name}: {page.markdown.name} and {page.notebook.name} were both edited; "
            f"copy what you want from the notebook to the .md and delete the notebook, it is made again"
        )
    raise Problem(
        f"{page.name}: {page.notebook.name} was edited and its .md does not have the edit; "
        f"`jupytext --sync --check-source-is-newer book/{page.name}.ipynb` carries it over"
    )


def told(error) -> str:
    """What a failed cell says: its last sentence first, then the traceback unless the sentence explains itself."""
    sentence = f"{error.ename}: {error.evalue}" if error.ename not in SENTENCES else error.evalue
    trouble = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
    return sentence if error.ename in SENTENCES else f"{sentence}\n\n{trouble}"


def noisy(notebook: dict) -> str | None:
    """What in the outputs would differ from run to run (warnings with paths, memory addresses), or None."""
    for i, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            shown = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            if output.get("name") == "stderr":
                return f"cell {i} writes to stderr: {shown.strip()[:300]}"
            if re.search(r"\b0x[0-9a-f]{6,}", shown):
                return f"cell {i} shows a memory address: {shown.strip()[:120]} (end the cell with a semicolon)"
    return None


def write(page: Page, notebook: dict, fingerprint: dict) -> bool:
    """Write the notebook in canonical form: no timestamps, no versions, so that an unchanged rerun changes no byte.

    Returns whether it changed.
    """
    notebook = copy.deepcopy(dict(notebook))
    for cell in notebook["cells"]:
        cell["metadata"].pop("execution", None)
    pictures.shrink(notebook)
    marks = {"outputs": freshness.outputs_digest(notebook), "pair": pages.inputs_digest(notebook)}
    about = notebook["metadata"]  # of the .md, so that jupytext sees no difference between the two
    notebook["metadata"] = {
        "jupytext": about.get("jupytext", {}),
        "kernelspec": about.get("kernelspec", {"display_name": "Python 3", "name": "python3"}),
        "language_info": {"name": "python"},
        "racing": {"fingerprint": fingerprint} | marks,
    }
    content = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    changed = not page.notebook.exists() or page.notebook.read_bytes() != content.encode()
    if changed:
        write_whole(page.notebook, content)
    return changed


def carry_prose(page: Page) -> bool:
    """Carry edits in prose over to the notebook and keep its outputs; only for pages that are not stale."""
    refuse_if_edited(page)
    notebook, old = pages.source(page), pages.stored(page)
    outputs = iter([cell for cell in old["cells"] if cell["cell_type"] == "code"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            ran = next(outputs)
            cell["outputs"], cell["execution_count"] = ran["outputs"], ran["execution_count"]
    return write(page, notebook, old["metadata"]["racing"]["fingerprint"])


def note_seconds(name: str, value: float, root: Path) -> None:
    """Remember how long a page took; small changes are noise and not worth a line in the history."""
    known = freshness.seconds(root)
    if not known.get(name) or not 0.75 < value / known[name] < 1.33:
        known[name] = round(value, 1)
        write_whole(root / "book" / freshness.SECONDS, json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def bring_up_to_date(chosen: list[Page], force: bool = False, workers: int | None = None) -> list[str]:
    """Execute the stale pages, two at a time on two cores; carry prose edits over. Returns what went wrong."""
    todo, failures = [], []
    for page in chosen:
        reasons = ["asked for"] if force else freshness.stale(page)
        if reasons:
            todo.append(page)
            print(f"  {page.name}: {', '.join(reasons[:3])}{' …' if len(reasons) > 3 else ''}", flush=True)
            continue
        try:
            if carry_prose(page):
                print(f"  {page.name}: prose changed, outputs kept", flush=True)
        except Problem as error:
            failures.append(str(error))
    if not todo:
        return failures
    known = freshness.seconds(todo[0].root)
    todo.sort(key=lambda page: -known.get(page.name, 0.0))  # the longest first, so that none runs alone at the end

    async def every() -> None:
        # nbclient's own handler would end one kernel and let the other pages go on; Ctrl-C ends them all.
        asyncio.get_running_loop().add_signal_handler = lambda *_: None
        free = asyncio.Semaphore(workers or os.cpu_count() or 1)

        async def one(page: Page) -> None:
            async with free:
                try:
                    taken = await execute(page)
                except Exception as error:
                    if asyncio.current_task().cancelling():  # Ctrl-C; nbclient stumbles over its own cleanup
                        raise asyncio.CancelledError from None
                    failures.append(str(error) if isinstance(error, Problem) else f"{page.name} failed: {error!r}")
                    print(f"  {page.name}: FAILED", flush=True)
                else:
                    note_seconds(page.name, taken, page.root)
                    print(f"  {page.name}: executed in {taken:.1f} s", flush=True)

        await asyncio.gather(*map(one, todo))

    asyncio.run(every())
    return failures
