"""Commands that are stopped, killed or cut off: no orphans, no half files, no traceback."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

SLEEPS = 'import pathlib, time\npathlib.Path(SIGN).write_text("here")\ntime.sleep(300)\n'


def start(executed, tmp_path, *arguments, **variables):
    """`python -m lib …` in a session of its own, with a temporary folder of its own."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "RACING"))}
    env = clean | {"PYTHONPATH": str(executed.root), "TMPDIR": str(tmp_path / "tmp")} | variables
    return subprocess.Popen(
        [sys.executable, "-m", "lib", *arguments], cwd=executed.root, env=env, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def until(condition, seconds=90):
    deadline = time.time() + seconds
    while time.time() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen")


def family(process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def gone(processes) -> bool:
    def over(one):
        with contextlib.suppress(psutil.NoSuchProcess):
            return not one.is_running() or one.status() == psutil.STATUS_ZOMBIE
        return True

    return all(over(one) for one in processes)


def tree(executed) -> dict[str, bytes]:
    """All files but the caches of Python itself and the empty files whose bytes sweeps lock, which stay."""
    there = (path for path in executed.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    found = (path for path in there if path.name != ".lock" or path.stat().st_size)
    return {path.relative_to(executed.root).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def sleeping(executed, tmp_path):
    """A page that says where it is, and then sleeps."""
    sign = tmp_path / "sign"
    executed.edit("book/paper/two.md", 'check("two-width"', SLEEPS.replace("SIGN", repr(str(sign))) + 'check("two-width"')
    return sign


@pytest.mark.parametrize(
    ("command", "number", "status"),
    [
        ("execute", signal.SIGTERM, 143),
        ("execute", signal.SIGKILL, -9),
        ("execute", signal.SIGINT, 130),
        ("run", signal.SIGTERM, 143),
        ("run", signal.SIGKILL, -9),
        ("run", signal.SIGINT, 130),
    ],
)
def test_a_command_that_is_stopped_takes_everything_with_it(executed, tmp_path, sleeping, command, number, status):
    before = tree(executed)
    process = start(executed, tmp_path, command, "paper/two")
    until(sleeping.exists)
    children = family(process)
    assert any("ipykernel" in " ".join(one.cmdline()) for one in children)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)  # a terminal tells all of them
    out, error = process.communicate(timeout=30)
    assert process.returncode == status, error
    assert "Traceback" not in error and "zmq" not in error
    assert number == signal.SIGKILL or error.strip().splitlines()[-1] == "stopped"
    until(lambda: gone(children), 10)
    assert tree(executed) == before  # no half notebook, no row, no temporary file
    left = [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("racing")]
    assert number == signal.SIGKILL or left == []  # who is killed outright cannot tidy up; the next command does


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_several_pages_in_forks_end_with_their_command(executed, tmp_path, sleeping, number, status):
    """Two pages, which are forks of one interpreter: one sleeps, the other holds its interpreter's lock, so that only the
    system can end it."""
    sign = tmp_path / "other sign"
    holds = f"import ctypes, pathlib\npathlib.Path({str(sign)!r}).write_text('here')\nctypes.PyDLL(None).sleep(300)\n"
    executed.edit("book/paper/one.md", 'check("one-width"', holds + 'check("one-width"')
    before = tree(executed)
    process = start(executed, tmp_path, "execute")
    try:
        until(lambda: sleeping.exists() and sign.exists())
        children = family(process)
        (nursery,) = [one for one in children if one.ppid() == process.pid and "nursery.py" in " ".join(one.cmdline())]
        assert len(nursery.children()) == 4  # two pages, two kernels
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        out, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == status, error
    assert "Traceback" not in error and "zmq" not in error
    until(lambda: gone(children), 10)
    assert tree(executed) == before
    left = [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("racing")]
    assert not any(name.startswith("racing-nursery") for name in left)  # it tidies up after a command that was killed
    assert number == signal.SIGKILL or left == []


def test_a_kernel_that_dies_under_execute_is_a_sentence(executed, tmp_path):
    executed.edit("book/paper/two.md", 'check("two-width"', 'import os; os._exit(9)\ncheck("two-width"')
    before = tree(executed)
    done = executed.run("execute", "paper/two")
    assert done.returncode == 1 and done.stderr.strip() == (
        "paper/two failed: its kernel died (was it killed, or out of memory?)"
    )
    assert tree(executed) == before


def test_a_verdict_that_changed_is_a_sentence(executed, forks):
    executed.edit("lib/gamma.py", "2.0", "2.5")
    done = executed.run("execute", "paper/two")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.strip().startswith("paper/two failed: two-width: measured 'not reproduced'")


def test_a_reader_that_goes_away_and_a_full_device(executed, tmp_path):
    """`pages | head`, and `pages > /dev/full`."""
    process = start(executed, tmp_path, "pages")
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(60) == 141
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "lib", "pages"], cwd=executed.root, stdout=full, stderr=subprocess.PIPE, text=True,
                env=os.environ | {"PYTHONPATH": str(executed.root)},
            )  # fmt: skip
        assert done.returncode == 2 and done.stderr.strip() == "this cannot be written or read: the disk is full"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_text_that_the_terminal_does_not_have(executed, tmp_path, encoding):
    process = start(executed, tmp_path, "execute", "paper/é", PYTHONIOENCODING=encoding)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and "there is no page" in error and "Traceback" not in error
    process = start(executed, tmp_path, "run", "paper/two", "-p", b"name=\xff")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and "is not text in this terminal's encoding" in error and "Traceback" not in error
    assert not (executed.root / "_runs").exists()


def test_a_checkout_that_cannot_be_written(executed, tmp_path):
    """Set-up in a folder where no environment can be made: here, where a file is in its place."""
    (executed.root / ".venv").write_text("not a folder")
    script = "import sys; from lib.press import environment; environment.unmet = lambda: ['x']; from lib.__main__ import main; "
    done = subprocess.run(
        [sys.executable, "-c", script + "sys.exit(main(['pages']))"], cwd=executed.root, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(executed.root), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert (executed.root / ".venv").read_text() == "not a folder"
