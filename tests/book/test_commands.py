"""The command line: help, the nearest name, one sentence and status 2 for what is wrong. No command here starts a kernel."""

import pytest
from click.testing import CliRunner

from lib import __main__ as main
from lib.__main__ import cli

COMMANDS = ("book", "execute", "pages", "run", "sweep", "results", "seeds", "record", "data")


def call(*arguments: str):
    return CliRunner().invoke(cli, arguments, prog_name="python -m lib")


def test_the_commands_are_these_nine_all_described_and_alone_it_prints_the_help():
    shown = call()
    assert set(cli.commands) == set(COMMANDS) and all(command in shown.output for command in COMMANDS)
    for command in cli.commands.values():
        options = [option for option in command.params if option.param_type_name == "option"]
        assert command.help and all(option.help for option in options)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("swep", "No such command 'swep'. Did you mean 'sweep'?"),
        ("run deep_linear/mode", "there is no page 'deep_linear/mode'; did you mean 'deep_linear/modes'?"),
        ("run ../README", "there is no page '../README'"),
        ("run deep_linear/modes -p hiden=4", "there is no parameter 'hiden'; did you mean 'hidden'?"),
        ("run deep_linear/modes -p hidden=four", "'hidden' must be int, got 'four'"),
        ("run deep_linear/modes -p hidden=1", "'hidden' must lie in [4, 100000], got 1"),
        ("run deep_linear/modes -p hidden", "write a parameter as NAME=VALUE, not 'hidden'"),
        ("run deep_linear/modes -p hidden=4 -p hidden=5", "the parameter 'hidden' is given twice"),
        ("run deep_linear/modes --preset huge", "there is no preset 'huge'; choose one of smoke, laptop, paper"),
        ("run deep_linear/modes --device tpu", "there is no device 'tpu'"),
        ("run neural_race/naturalistic -p front_end=vgg", "'front_end' must be one of random, resnet"),
        ("execute deep_linear/mode", "did you mean 'deep_linear/modes'?"),
        ("sweep deep_linear/modes --grid seed", "write a grid as NAME=START:STOP[:STEP] or NAME=A,B,C, not 'seed'"),
        ("sweep deep_linear/modes --grid seed=5:1", "the range '5:1' is empty"),
        ("sweep deep_linear/modes --grid seed=0:2 -p seed=1", "seed is given twice"),
        ("sweep deep_linear/modes --grid seed=0:2 --on moon", "'moon' is no place to run a sweep"),
        ("results nonsense", "'nonsense' names 0 runs under"),
        ("results deep_linear/modes", "there are no runs of deep_linear/modes yet"),
        ("seeds deep_linear/modes --known", "nothing is known about other seeds; run without --known"),
        ("record nonsense", "'nonsense' names 0 runs"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("RACING_RUNS", str(tmp_path))
    done = call(*arguments.split())
    assert done.exit_code == 2 and sentence in done.stderr.replace("\n", " "), done.output
    said = [line for line in done.stderr.splitlines() if not line.startswith(("Usage:", "Try '")) and line.strip()]
    assert len(said) == 1 and "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_pages_and_data_are_listed():
    done = call("pages")
    assert done.exit_code == 0 and "deep_linear/modes  (laptop" in done.output
    assert "hidden: int = 50  hidden units" in done.output and "paper preset:" in done.output
    assert "mnist" in call("data").output


def test_an_export_on_a_machine_without_a_gpu_may_name_one(tmp_path, monkeypatch):
    monkeypatch.setenv("RACING_RUNS", str(tmp_path / "runs"))
    jobs = tmp_path / "jobs.txt"
    done = call("sweep", "bias_learning/masks", "--grid", "seed=1:3", "--device", "cuda", "--export", str(jobs))
    assert done.exit_code == 0 and done.output == f"2 commands written to {jobs}\n"
    assert all("-m lib run bias_learning/masks" in line and "device=cuda" in line for line in jobs.read_text().splitlines())


def test_without_packages_it_says_what_to_do(tmp_path):
    import subprocess
    import sys

    command = [sys.executable, "-S", "-c", f"import runpy; runpy.run_path({main.__file__!r}, run_name='__main__')"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={})
    assert done.returncode == 1 and "make setup" in done.stderr and "Traceback" not in done.stderr
