"""`python -m muster doctor`: a line for each thing, what to mend, and an exit code."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import BUILD

import muster
from muster import _doctor

LOOKED_AT = ["library", "programs", "broker", "identity", "SIGTERM", "shield", "directory"]


def doctor(env, *arguments, path=f"{BUILD / 'tools'}:{BUILD / 'broker'}:/usr/bin"):
    """The exit code, and the lines by what they are about."""
    done = subprocess.run(
        [sys.executable, "-m", "muster", "doctor", *arguments],
        env={**env, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "", done.stderr
    lines = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert list(lines)[: len(LOOKED_AT)] == LOOKED_AT
    return done.returncode, lines


def mends(lines):
    return {name for name, line in lines.items() if line.startswith("MEND")} & {*LOOKED_AT}


def test_where_all_is_well_nothing_is_to_be_mended(world):
    _, lines = doctor({**world.env, "MUSTER_JOB": "words"})
    assert mends(lines) == set()
    assert muster.__version__ in lines["library"] and "_native" in lines["library"]
    assert re.search(r"tcp://127.*, musterd .*, 0 jobs", lines["broker"])
    assert lines["identity"].endswith("no launcher, so rank 0 of 1, job words")
    assert lines["directory"].endswith("GB free; it will be made")
    assert "outlives a group's SIGTERM" in lines["shield"]
    assert not (world.directory / "checkpoints").exists()
    _, lines = doctor(world.env, "--directory", str(world.directory))
    assert mends(lines) == set()
    assert lines["identity"].endswith("`muster run --job` or MUSTER_JOB gives one")
    assert [path for path in world.directory.iterdir() if "doctor" in path.name] == []


def test_what_is_missing_is_named_with_what_mends_it(tmp_path):
    nobody = {"MUSTER_BROKER": f"ipc://{tmp_path}/nobody"}  # test_place.py has where none is named
    code, lines = doctor({"PYTHONPATH": os.environ["PYTHONPATH"], **nobody}, path="/nowhere")
    assert code == 1 and mends(lines) == {"programs", "broker", "directory"}
    assert "muster and musterd not found: install muster" in lines["programs"]
    assert "nobody answers at ipc:" in lines["broker"] and "start `musterd" in lines["broker"]
    assert "set MUSTER_CHECKPOINT_DIR" in lines["directory"]


def test_contradictions_and_dead_brokers_are_named(world, tmp_path):
    ranks = {"MUSTER_RANK": "0", "MUSTER_WORLD_SIZE": "1"}
    torchrun = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "none"}
    (tmp_path / "file").touch()
    code, lines = doctor(
        {**world.env, **ranks, **torchrun, "MUSTER_BROKER": f"ipc://{tmp_path}/nobody"},
        "--directory",
        str(tmp_path / "file"),
    )
    assert code == 1 and mends(lines) == {"broker", "identity", "directory"}
    assert f"nobody answers at ipc://{tmp_path}/nobody" in lines["broker"]
    assert "torchrun says rank 1 of 2" in lines["identity"]
    assert "cannot hold a checkpoint (Not a directory)" in lines["directory"]
    _, lines = doctor({**world.env, **torchrun})
    assert mends(lines) == {"identity"} and "set MUSTER_JOB" in lines["identity"]
    _, lines = doctor({**world.env, **torchrun, "MUSTER_JOB": "words"})
    assert lines["identity"].endswith("rank 1 of 2, job words, by torchrun")


def test_the_owner_of_SIGTERM_is_named():
    def mine(signo, frame):
        pass

    before = signal.signal(signal.SIGTERM, mine)
    try:
        assert "mine handles it" in _doctor._signals().text
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        assert "is blocked" in str(_doctor._signals()) and _doctor._signals().mend
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        signal.signal(signal.SIGTERM, before)


def test_a_shield_that_does_not_work_is_seen(monkeypatch):
    monkeypatch.setattr(_doctor, "shield", lambda: None)
    assert "died of SIGTERM" in str(_doctor._shield())


@pytest.mark.parametrize(
    ("version", "mend"),
    [
        ("2.15.1", None),
        ("2.99.0", "preempt and resume a short run"),
        ("2.3.0", r"needs 2\.4 or later: pip install 'torch==2\.15\.\*'"),
    ],
)
def test_a_framework_that_is_too_old_or_that_nobody_tested_is_named(monkeypatch, version, mend):
    def installed(name):
        if name != "torch":
            raise _doctor.importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(_doctor.importlib.metadata, "version", installed)
    (found,) = _doctor._frameworks()
    assert version in found.text and (found.mend is not None) == (mend is not None)
    assert mend is None or re.search(mend, str(found))
