"""Sweeps: grids, finished points that are skipped, failures, a sweep that is killed and resumed, a Dask scheduler elsewhere."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from lib.book import runs, sweep
from lib.files import Problem


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x=0:4", ["0", "1", "2", "3"]),
        ("x=0:10:5", ["0", "5"]),
        ("x=0.1:0.5:0.2", ["0.1", "0.3", "0.5"]),
        ("x=0.1:0.9:0.1", [f"0.{i}" for i in range(1, 10)]),
        ("x=mnist,vai", ["mnist", "vai"]),
        ("x=7", ["7"]),
    ],
)
def test_axes(text, values):
    assert sweep.axis(text) == ("x", values)


@pytest.mark.parametrize("text", ["x", "=1", "x=", "x=5:1", "x=0:1:0", "x=a:b", "x=0:1e9", "x=0:inf"])
def test_bad_axes_are_refused(text):
    with pytest.raises(Problem):
        sweep.axis(text)


def test_points_are_validated_before_anything_starts_named_and_merged(repository):
    page = repository.page("two")
    made = sweep.points(page, ["width=1:4", "name=a,b"], {"seed": "1"})
    assert len({point.name for point in made}) == 6 and made == sweep.points(page, ["width=1:4", "name=a,b"], {"seed": "1"})
    assert len(sweep.points(page, ["width=1,1,2"], {})) == 2
    for grid, message in (
        (["width=1:20"], r"must lie in \[1, 10\]"),
        (["widht=1"], "did you mean 'width'"),
        (["width=1", "width=2"], "width is given twice"),
    ):
        with pytest.raises(Problem, match=message):
            sweep.points(page, grid, {})


def test_a_place_that_is_none_is_refused(repository, tmp_path, monkeypatch):
    page = repository.page("two")
    todo = sweep.points(page, ["width=1"], {})
    with pytest.raises(Problem, match="choose local, slurm or tcp://host:8786"):
        sweep.sweep(page, todo, on="moon")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="there is no Slurm on this machine"):
        sweep.sweep(page, todo, on="slurm")
    assert sweep.sweep(page, [], on="moon") == []  # nothing to do


def test_a_job_that_slurm_refuses_is_one_sentence(repository, tmp_path, monkeypatch):
    cluster = SimpleNamespace(job_script=lambda: "#!/bin/sh", close=lambda: None)  # dask-jobqueue is an extra
    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=lambda **options: cluster))
    refuses = tmp_path / "sbatch"
    refuses.write_text("#!/bin/sh\necho 'allocation failure: Invalid partition name specified' >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    page = repository.page("two")
    with pytest.raises(Problem, match="Slurm refuses such a job: allocation failure: Invalid partition name specified"):
        sweep.sweep(page, sweep.points(page, ["width=1"], {}), on="slurm")


# --- with kernels ----------------------------------------------------------------------------------------------------


def rows(repository) -> list[dict]:
    found, damaged = runs.rows(repository.page("two"))
    assert damaged == []
    return found


@pytest.mark.slow
def test_exported_lines_are_ordinary_commands_that_run(executed):
    done = executed.run("sweep", "paper/two", "--grid", "name=a b,c", "--export", "jobs.txt")
    assert done.returncode == 0 and "2 commands written to jobs.txt" in done.stdout, done.stderr
    lines = executed.read("jobs.txt").splitlines()
    assert all(" -m lib run paper/two -p " in line for line in lines)
    subprocess.run(lines[0], shell=True, check=True, env=executed.environment(), capture_output=True)
    (row,) = rows(executed)
    assert row["parameters"]["name"] == "a b" and "name=a b" in shlex.split(lines[0])
    dry = executed.run("sweep", "paper/two", "--grid", "name=a b,c", "--dry-run")  # the same run under the same name
    assert dry.stdout.count("finished") == 1 and dry.stdout.count("to run") == 1 and "2 points" in dry.stdout


@pytest.mark.slow
def test_a_failing_point_does_not_stop_the_others_and_finished_ones_are_skipped(executed):
    executed.edit("book/paper/two.md", 'check("two-width"', 'if width == 2:\n    raise ValueError("no two")\ncheck("two-width"')
    done = executed.run("sweep", "paper/two", "--grid", "width=1:4", "--workers", "1")
    assert done.returncode == 1 and "2 finished, 0 skipped (already finished), 1 failed" in done.stdout, done.stderr
    assert "failed: width=2 (ValueError: no two)" in done.stdout
    kept = {row["parameters"]["width"]: row for row in rows(executed)}
    assert kept[2]["status"] == "failed" and "Traceback" in kept[2]["error"] and kept[3]["results"]["two-width"]["measured"] == 6
    victim = runs.path_of(executed.page("two"), kept[1]["run"])
    victim.write_text(victim.read_text()[:40])  # a row that was cut short is not trusted
    again = executed.run("sweep", "paper/two", "--grid", "width=1,3", "--workers", "1")
    assert again.returncode == 0 and "1 finished, 1 skipped" in again.stdout, again.stdout + again.stderr


@pytest.mark.slow
def test_a_sweep_that_is_killed_half_way_goes_on_with_nothing_lost_or_doubled(executed):
    command = [sys.executable, "-m", "lib", "sweep", "paper/two", "--grid", "width=1:6", "--workers", "1"]
    options = {"cwd": executed.root, "env": executed.environment(), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command, start_new_session=True, **options)
    folder, deadline = executed.root / "_runs/paper/two", time.time() + 120
    while len(list(folder.glob("*.json"))) < 2 and time.time() < deadline:
        time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = {row["run"]: row["finished"] for row in rows(executed)}
    assert 2 <= len(before) < 5
    again = executed.run(*command[3:])
    assert again.returncode == 0 and f"{len(before)} skipped" in again.stdout, again.stdout + again.stderr
    after = {row["run"]: row["finished"] for row in rows(executed)}
    assert len(after) == 5 and before.items() <= after.items()  # what had finished was not run again
    assert sorted(row["results"]["two-width"]["measured"] for row in rows(executed)) == [2, 4, 6, 8, 10]
    assert not list(folder.glob(".*"))  # no half-written file is left


@pytest.mark.slow
def test_a_sweep_on_a_scheduler_at_an_address(executed):
    from distributed import LocalCluster

    page, said = executed.page("two"), []
    todo = sweep.points(page, ["width=1,2"], {})
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL") as cluster:
        made = sweep.sweep(page, todo, on=cluster.scheduler_address, say=said.append)
    assert said[0] == "paper/two: 2 points to run on 1 worker" and [row["status"] for row in made] == ["finished"] * 2
    assert sorted(row["run"] for row in rows(executed)) == sorted(point.name for point in todo)


@pytest.mark.slow
def test_nobody_at_an_address(executed):
    done = executed.run("sweep", "paper/two", "--grid", "width=1", "--on", "tcp://127.0.0.1:9")
    assert done.returncode == 2 and done.stderr == "there is no Dask scheduler at tcp://127.0.0.1:9\n"
