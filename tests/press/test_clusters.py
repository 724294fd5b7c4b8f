"""Where sweeps run: workers that are lost, a real Slurm on this machine, a scheduler of one's own, lists of commands."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from lib.press import environment, pages
from lib.press.clusters import export, places, slurm
from lib.press.errors import RunError
from lib.press.notebooks import nursery
from lib.press.workbench import sweeps


def rows(repository):
    return [json.loads(path.read_text()) for path in sorted((repository.root / "_runs/paper/two").glob("*.json"))]


def wait_for(what, seconds=60.0):
    """The first value of `what()` that is not empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:g} seconds for {what}")


def start(repository, *arguments, **variables):
    """`python -m lib sweep paper/two …` in the background, in a session of its own, hearing Ctrl-C."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "RACING"))}
    return subprocess.Popen(
        [sys.executable, "-m", "lib", "sweep", "paper/two", *arguments],
        cwd=repository.root,
        env=clean | {"PYTHONPATH": str(repository.root)} | variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture
def diary(executed):
    """The repository whose page two keeps a diary: a line (width, Slurm job, process) when it begins, one when it ends.

    Widths above 50 that begin for the first time wait until the file `go` is there, so that somebody can interrupt them."""
    path = executed.root / "diary.txt"
    begins = f'''import os, time
def note(word):
    with open("{path}", "a") as file:
        print(word, width, os.environ.get("SLURM_JOB_ID"), os.getppid(), file=file)
seen = [line.split()[1] for line in open("{path}")]
note("begin")
while width > 50 and str(width) not in seen and not os.path.exists("{executed.root}/go"):
    time.sleep(0.05)
'''
    executed.edit("book/paper/two.md", "from lib import beta", begins + "from lib import beta")
    executed.edit("book/paper/two.md", 'check("two-width"', 'note("end")\ncheck("two-width"')
    executed.edit("book/paper/two.md", "[1, 10]", "[1, 99]")
    path.touch()
    executed.diary = lambda word: [line.split()[1:] for line in path.read_text().splitlines() if line.startswith(word)]
    return executed


# --- workers that are lost -------------------------------------------------------------------------------------------


def test_workers_that_were_given_up_are_asked_for_again(tmp_path):
    """With no patience at all, distributed closes the nanny of each killed worker: without `tend` nobody is left."""
    import dask

    client, ours = places.connect("local", 2, tmp_path, tmp_path)
    over = threading.Event()
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"})
    try:
        first = set(client.run(os.getpid).values())
        assert len(first) == 2
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not ours.workers, 20)
        assert len(ours.worker_spec) == 2  # still wanted, and nobody does anything about it
        threading.Thread(target=places.tend, args=(ours, 2, over, 0.1), daemon=True).start()
        client.wait_for_workers(2, timeout=60)
        assert client.submit(os.getpid).result(timeout=30) not in first
    finally:
        over.set()
        places.shut_down(client, ours)
        dask.config.set({"distributed.deploy.lost-worker-timeout": places.LOST})


def test_workers_end_with_what_forks_them_and_come_back(tmp_path):
    client, ours = places.connect("local", 2, tmp_path, tmp_path)
    try:
        first = client.run(lambda: (os.getpid(), os.getppid()))
        (server,) = {parent for _, parent in first.values()}
        assert server != os.getpid()  # neither this process nor an interpreter for each
        os.kill(server, signal.SIGKILL)
        wait_for(lambda: not any(psutil.pid_exists(worker) for worker, _ in first.values()), 20)
        client.wait_for_workers(2, timeout=60)
        assert not set(client.run(os.getpid).values()) & {worker for worker, _ in first.values()}
    finally:
        places.shut_down(client, ours)


def test_tending_leaves_a_whole_cluster_alone():
    from distributed.core import Status

    class Worker:
        status = Status.running

    class Cluster:
        workers, asked, looks = {0: Worker(), 1: Worker()}, [], 0

        def scale(self, wanted):
            self.asked.append(wanted)
            self.workers[1] = Worker()

    ours, over = Cluster(), threading.Event()

    def dead(cluster):
        cluster.looks += 1
        if cluster.looks == 5:
            cluster.workers[1].status = Status.closed  # its nanny gave up
        if cluster.looks == 7:
            raise OSError("the queue does not answer")
        if cluster.looks == 10:
            over.set()
        return places.closed(cluster)

    places.tend(ours, 2, over, 0.001, dead)
    assert ours.asked == [2] and ours.looks == 10 and len(ours.workers) == 2


# --- what to ask Slurm for -------------------------------------------------------------------------------------------


def test_wishes_come_from_a_file_and_from_options(tmp_path):
    from lib.press.workbench import commands

    path = tmp_path / "cluster.yml"
    path.write_text("partition: long\njobs: 8\nmemory: 16GB\nwalltime: '10:00:00'\ndirectives: ['--gres=gpu:1']\nlook: 2\n")
    read = slurm.read(path)
    assert read == slurm.Slurm("long", jobs=8, memory="16GB", walltime="10:00:00", directives=("--gres=gpu:1",), look=2.0)

    def chosen(*arguments):
        return slurm.chosen(commands.parser().parse_args(["sweep", "paper/two", *arguments]))

    assert chosen() == "local" and chosen("--on", "tcp://here:1") == "tcp://here:1" and chosen("--on", "slurm") == slurm.Slurm()
    both = chosen("--on", "slurm", "--cluster", str(path), "--jobs", "3", "--directive=--qos=low")
    assert both == slurm.Slurm("long", jobs=3, memory="16GB", walltime="10:00:00", directives=("--qos=low",), look=2.0)
    with pytest.raises(RunError, match="--jobs is for --on slurm"):
        chosen("--jobs", "3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs: 0", "jobs: a whole number above zero"),
        ("jobs: 1.5", "'jobs' must be a whole number"),
        ("partitoin: x", "unknown field partitoin"),
        ("walltime: 2:00:00", "put the walltime in quotes"),  # YAML reads this as 7200
        ("walltime: 'soon'", "HOURS:MINUTES:SECONDS"),
        ("memory: 4", "500MB or 4GB"),
        ("look: -1", "seconds above zero"),
        ('partition: "a\\nb"', "one line of text"),
        ("directives: --qos=low", "must be a list"),
        ("- a list", "expected fields"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(tmp_path, text, message):
    path = tmp_path / "cluster.yml"
    path.write_text(text + "\n")
    with pytest.raises(RunError, match=message):
        slurm.read(path)


def test_the_packages_for_slurm_are_a_set_with_pins(monkeypatch):
    wanted = environment.named_set("slurm")
    assert "dask-jobqueue" in wanted and all(version for version in wanted.values())
    assert not set(wanted) & set(environment.pins())  # not for those who only read, rerun and test
    asked = []
    monkeypatch.setattr(environment, "pip_install", lambda python, *arguments: asked.append(arguments))
    monkeypatch.setattr(environment, "unmet", lambda pins=None: [])
    environment.need("slurm")
    assert asked == []
    monkeypatch.setattr(environment, "unmet", lambda pins=None: ["all"])
    environment.need("slurm")
    assert asked == [("--constraint", str(environment.REQUIREMENTS), *(f"{name}=={wanted[name]}" for name in wanted))]
    with pytest.raises(environment.Missing, match="no set 'slurp'"):
        environment.need("slurp")


def test_a_machine_without_slurm_says_so(executed, tmp_path):
    done = executed.run("sweep", "paper/two", "--grid", "width=1:3", "--on", "slurm", PATH=str(tmp_path))
    assert done.returncode == 2 and "there is no Slurm on this machine" in done.stderr and "Traceback" not in done.stderr


def test_devices_that_cannot_be_asked_are_believed():
    for place in (None, slurm.Slurm()):
        pick = places.device_picker(place)
        assert pick("cpu") == "cpu" and pick("cuda") == "cuda"  # also where there is none
        with pytest.raises(RunError, match="name the device"):
            pick("auto")
        with pytest.raises(RunError, match="there is no device 'tpu'"):
            pick("tpu")


def test_jobs_that_end_at_once_raise_the_alarm(tmp_path, monkeypatch):
    class Job:
        def __init__(self, number):
            self.job_id = number

    class Cluster:
        workers, scheduler_info = {"a": Job("1"), "b": Job("2"), "c": Job(None)}, {"workers": {}}

    (tmp_path / "racing-1.err").write_text("slurm says\nmodule: command not found\n\n")
    said = []
    watch = slurm.Watch(said.append, tmp_path)
    monkeypatch.setattr(slurm, "queued", lambda: None)
    assert watch(Cluster) == []  # Slurm does not answer: nothing is known
    monkeypatch.setattr(slurm, "queued", lambda: {"2"})
    assert watch(Cluster) == ["a", "c"] == watch(Cluster) and not said
    Cluster.scheduler_info = {"workers": {"one": 1}}
    assert watch(Cluster) == ["a", "c"]  # somebody works: that is no alarm, the others are asked for again
    Cluster.scheduler_info = {"workers": {}}
    for _ in range(slurm.FRUITLESS):
        watch(Cluster)
    assert said == ["the Slurm jobs end before they can work: module: command not found"]


# --- a real Slurm ----------------------------------------------------------------------------------------------------

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "setpriv")
CONFIGURATION = """
ClusterName=tiny
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={controller}
SlurmdPort={node}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=tiny Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def tiny_slurm(home: Path):
    """A whole Slurm on this machine, on loopback only, with all its state in `home`: gives the environment of its users."""
    import pwd

    try:
        owner = pwd.getpwnam("munge")
    except KeyError:
        pytest.skip("a real Slurm needs the user 'munge', which Debian's package makes")
    for folder in (home, *home.parents):  # munged refuses a path that others may not enter
        if folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    for name in ("munge", "state", "spool"):
        (home / name).mkdir()
    (home / "munge/key").write_bytes(os.urandom(128))
    (home / "munge/key").chmod(0o600)
    for path in (home / "munge", home / "munge/key"):
        os.chown(path, owner.pw_uid, owner.pw_gid)
    host = socket.gethostname().split(".")[0]
    ports = {"controller": free_port(), "node": free_port()}
    (home / "slurm.conf").write_text(CONFIGURATION.format(host=host, home=home, **ports))
    variables = {"SLURM_CONF": str(home / "slurm.conf")}
    munged = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "--foreground"]
    places_of_munge = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
    munged += [f"--{what}={home}/munge/{name}" for what, name in places_of_munge.items()]
    daemons = []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | variables}
    try:
        daemons.append(subprocess.Popen(munged, **quiet))
        try:
            wait_for((home / "munge/socket").exists, 10)
            for command in (["slurmctld", "-D", "-i"], ["slurmd", "-D"]):
                daemons.append(subprocess.Popen(command, **quiet))
            idle = ["sinfo", "--noheader", "--states=idle", "--format=%n"]
            wait_for(lambda: subprocess.run(idle, text=True, env=quiet["env"], capture_output=True).stdout.strip() == host, 30)
        except AssertionError:
            logs = [path.read_text()[-300:] for path in (*home.glob("*.log"), *home.glob("munge/log"))]
            pytest.skip(f"Slurm is installed, but does not start here: {' '.join(' '.join(logs).split())}")
        yield variables
    finally:
        steps = [one for daemon in daemons for one in psutil.Process(daemon.pid).children(recursive=True)]
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
        left = [one for one in steps if one.is_running()] + [
            one for one in psutil.process_iter(["cmdline"]) if any(str(home) in text for text in one.info["cmdline"] or ())
        ]
        for one in left:  # job steps have sessions of their own
            with contextlib.suppress(psutil.Error):
                one.kill()


def test_a_sweep_on_a_real_slurm_survives_cancelled_jobs(diary, tmp_path, monkeypatch):
    """Both jobs are cancelled in mid-point. They are submitted again, each point ends once, and nothing stays behind."""
    lacking = [program for program in NEEDED if shutil.which(program) is None]
    if lacking or os.getuid() != 0:  # asked first: nothing is installed for a Slurm that is not there
        pytest.skip(f"a real Slurm needs root and Debian's slurmctld, slurmd, slurm-client, munge ({lacking or 'not root'})")
    with contextlib.suppress(environment.Missing):
        environment.need("slurm")
    if environment.unmet(environment.named_set("slurm")):
        pytest.skip("dask-jobqueue is not there, and there is no network to install it from")
    home = tmp_path / "slurm"
    home.mkdir()
    with tiny_slurm(home) as variables:
        monkeypatch.setenv("SLURM_CONF", variables["SLURM_CONF"])
        with pytest.raises(RunError, match="Slurm does not take the job: invalid partition specified: none"):
            slurm.try_out("#!/bin/sh\n#SBATCH -p none\ntrue\n", home)
        assert slurm.queued() == set()
        diary.write("tiny.yml", "interface: lo\nlook: 1\nmemory: 1GB\nwalltime: '00:10:00'\n")
        where = ("--on", "slurm", "--cluster", "tiny.yml", "--partition", "tiny", "--jobs", "2")
        sweep = start(diary, "--grid", "width=51:56", *where, **variables)
        try:
            wait_for(lambda: len(diary.diary("begin")) == 2)
            first = {job for _, job, _ in diary.diary("begin")}
            assert slurm.queued() == first
            subprocess.run(["scancel", *first], check=True)
            wait_for(lambda: not first & slurm.queued())
            diary.write("go", "")
            said, _ = sweep.communicate(timeout=90)
        finally:
            sweep.kill()
        assert sweep.returncode == 0 and "5 points to run on 2 Slurm jobs" in said and "5 finished, 0 skipped" in said, said
        wait_for(lambda: slurm.queued() == set(), 15)  # the sweep has ended its jobs
    assert sorted(row["parameters"]["width"] for row in rows(diary)) == [51, 52, 53, 54, 55]
    assert all(row["status"] == "finished" for row in rows(diary))
    assert sorted(int(width) for width, *_ in diary.diary("end")) == [51, 52, 53, 54, 55]  # each once
    assert len(diary.diary("begin")) == 7  # two of them began twice
    assert not first & {job for _, job, _ in diary.diary("end")}  # other jobs did it
    assert not list((diary.root / "_runs").glob(".slurm*"))
    left = [one.info for one in psutil.process_iter(["pid", "cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or ())]
    assert left == []


# --- two sweeps, one point -------------------------------------------------------------------------------------------


def test_two_sweeps_share_their_points(diary, forks):
    """Both begin with the same slow point: one has it, the other does the rest, then waits for that row."""
    forking = {name: os.environ[name] for name in (nursery.ADDRESS, nursery.PYTHON)}
    both = [start(diary, "--grid", "width=51,1,2,3", "--workers", "1", **forking) for _ in range(2)]
    wait_for(lambda: len(diary.diary("end")) == 3)
    page = pages.find("paper/two", diary.root)
    (slow,) = [point for point in sweeps.points(page, ["width=51"], {})]
    with sweeps.alone(page, slow.name, patience=0) as ours:
        assert not ours
    with sweeps.alone(page, sweeps.points(page, ["width=1"], {})[0].name, patience=0) as ours:
        assert ours
    family = [one for sweep in both for one in psutil.Process(sweep.pid).children(recursive=True)]
    (process,) = [one for one in family if "_point" in one.cmdline() and '"width": 51' in one.cmdline()[-1]]
    process.terminate()  # stopped from outside: nobody's fault, begun again by whoever comes first
    told = [sweep.communicate(timeout=100)[0] for sweep in both]
    assert [sweep.returncode for sweep in both] == [0, 0], told
    assert not any(word in text for text in told for word in ("8787", "Warning"))  # no port is fought over
    assert sorted(width for width, *_ in diary.diary("end")) == ["1", "2", "3", "51"]  # no point was run twice
    assert sorted(width for width, *_ in diary.diary("begin")) == ["1", "2", "3", "51", "51"]
    assert all(row["status"] == "finished" for row in rows(diary)) and len(rows(diary)) == 4


# --- a list of commands ----------------------------------------------------------------------------------------------


def test_exported_commands_leave_the_rows_of_the_sweep(diary, forks):
    names = {point.name for point in sweeps.points(pages.find("paper/two", diary.root), ["width=1:3", "name=it's,b"], {})}
    grid = ("--grid", "width=1:3", "--grid", "name=it's,b")
    wrote = diary.run("sweep", "paper/two", *grid, "--export", "jobs.txt")
    assert wrote.returncode == 0 and "4 commands written to jobs.txt; 0 left out" in wrote.stdout, wrote.stderr
    lines = diary.read("jobs.txt").splitlines()
    assert len(lines) == 4 and not (diary.root / "_runs").exists()
    elsewhere = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RACING_RUNS")}
    every = subprocess.run(["xargs", "-d", "\\n", "-P2", "-n1", "sh", "-c"], input="\n".join(lines[:3]) + "\n", text=True,
                           cwd="/", env=elsewhere, capture_output=True)  # fmt: skip
    assert every.returncode == 0, every.stdout + every.stderr
    assert len(rows(diary)) == 3 and {row["run"] for row in rows(diary)} < names
    again = diary.run("sweep", "paper/two", *grid, "--export", "jobs.txt")
    assert "1 command written to jobs.txt; 3 left out" in again.stdout and diary.read("jobs.txt").splitlines() == lines[3:]
    subprocess.run(["sh", "-c", lines[0]], check=True, cwd="/", env=elsewhere)  # finished: nothing is run again
    assert len(diary.diary("begin")) == 3
    rest = diary.run("sweep", "paper/two", *grid)
    assert "1 finished, 3 skipped" in rest.stdout
    assert {row["run"] for row in rows(diary)} == names
    assert {row["results"]["two-width"]["measured"] for row in rows(diary)} == {2.0, 4.0}
    diary.edit("lib/gamma.py", "2.0", "2.5")
    late = subprocess.run(["sh", "-c", lines[0]], cwd="/", env=elsewhere, text=True, capture_output=True)
    assert late.returncode == 3 and "the code has changed" in late.stdout and len(rows(diary)) == 4


@pytest.mark.parametrize(("file", "message"), [(".", "is a folder"), ("no/where.txt", "there is no folder no")])
def test_a_list_goes_where_it_can(executed, file, message, monkeypatch):
    monkeypatch.chdir(executed.root)
    page = pages.find("paper/two", executed.root)
    with pytest.raises(RunError, match=message):
        export.write(file, page, sweeps.points(page, ["width=1:3"], {}))


def test_a_list_remembers_where_rows_go(executed, monkeypatch, tmp_path):
    monkeypatch.setenv("RACING_RUNS", str(tmp_path / "my runs"))
    page = pages.find("paper/two", executed.root)
    (point,) = sweeps.points(page, ["width=1"], {})
    assert f"&& RACING_RUNS='{tmp_path / 'my runs'}' " in export.line(page, point.settings, point.name)


def test_nobody_is_asked_twice_where_nobody_listens():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        assert places.refuses(address)
        listening.listen()
        assert not places.refuses(address)
    assert not any(map(places.refuses, ("local", "inproc://here", "tcp://127.0.0.1", "tcp://127.0.0.1:many")))


# --- a scheduler of one's own ----------------------------------------------------------------------------------------


def test_ctrl_c_on_a_cluster_of_ones_own_cancels_what_has_not_started(diary):
    """The point that runs goes on there and leaves its row; the others never begin, and the cluster stays."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        sweep = start(diary, "--grid", "width=51,1,2,3,4", "--on", cluster.scheduler_address)
        wait_for(lambda: diary.diary("begin"))
        os.killpg(sweep.pid, signal.SIGINT)
        said, _ = sweep.communicate(timeout=60)
        assert sweep.returncode == 130 and "stopped with 5 points to go" in said and "Traceback" not in said, said
        assert rows(diary) == []
        running = [key for keys in client.processing().values() for key in keys]
        assert len(running) <= 1, running  # what runs cannot be taken back; nothing waits behind it
        diary.write("go", "")
        assert wait_for(lambda: rows(diary))[0]["status"] == "finished"
        assert client.submit(os.getpid).result(timeout=30)  # the worker is free
    assert [width for width, *_ in diary.diary("begin")] == ["51"]
