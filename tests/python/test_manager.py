"""A manager in Python: saves and keeps by policy, and resumes with the same bits."""

import contextlib
import errno
import json
import os
import pathlib
import re
import shutil
import threading
import time
from types import SimpleNamespace

import numpy
import pytest
from conftest import await_that

import muster
from muster import _elsewhere, _progress

STEPS, SECONDS = 400, 0.01


def test_A9_a_managers_job_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(
    world, tmp_path
):
    world.run(2, "train_manager.py", STEPS, 0, tmp_path / "a", options=("--job", "other")).finish()
    env = {"MUSTER_CHECKPOINT_DIR": str(tmp_path / "second")}
    launch = world.run(2, "train_manager.py", STEPS, SECONDS, tmp_path / "b", env=env)
    world.await_step(10, ranks=2)
    world.muster("notify", "--job", "job", "1")
    launch.finish()
    assert (tmp_path / "a/False").read_text() == (tmp_path / "b/True").read_text()
    assert "restored None" in launch.log(0) and "Restored(step=" in launch.log(0)
    assert "kept [300, 350]" in launch.log(0)
    launch.ended(2, launches=2)
    (policy,) = world.client.policies("job")
    assert (policy.generation, policy.keep) == (2, "latest 2; best 1 least loss")
    names = [row.path.rpartition("/")[2] for row in world.client.checkpoints("job")]
    assert "step_000350" in names


@pytest.mark.parametrize("kind", ["exits", "forgets"])
def test_a_failure_that_leaves_its_manager_open_keeps_the_newest_checkpoint(world, tmp_path, kind):
    launch = world.run(1, "unclosed.py", kind, tmp_path / "mark")
    launch.finish()
    assert "restored None" in launch.log(0) and "restored 20" in launch.log(0)


def test_what_a_program_wrote_is_committed_once_it_is_on_the_disk_alone(alone, tmp_path, monkeypatch):
    def ends(path):  # as a signal handler of the program's that calls sys.exit(0) in the middle
        raise SystemExit(0)

    written = tmp_path / "written"
    written.mkdir()
    elsewhere = _elsewhere.Elsewhere()
    assert elsewhere.ask(0, wanted=True)
    with monkeypatch.context() as patched:
        patched.setattr(_progress, "sync", ends)
        with pytest.raises(SystemExit) as caught:
            elsewhere.commit(0, str(written), writer=True, metrics={})
    with pytest.raises(RuntimeError, match="wrote no checkpoint of step 0; the job goes on"):
        elsewhere.leave(caught.value)
    elsewhere = _elsewhere.Elsewhere()
    assert elsewhere.latest is None
    elsewhere.close()


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"path": "/own/checkpoint-8", "bytes": 12_300_000}, ["1", "12.3 MB", "/own/checkpoint-8"]),
        ({"path": "/own/checkpoint-8"}, None),
        ({"path": 5, "bytes": 5}, None),
        ({"path": "/own/\x1b[31m", "bytes": 5}, None),
    ],
)
def test_the_list_shows_what_a_program_wrote_by_itself(alone, metadata, shown):
    state = muster.TrainingState(w=numpy.zeros(4))
    with muster.Manager(state=state) as manager:
        manager.restore()
        assert manager.save(0, force=True, metadata=metadata)
        listed = alone.muster("checkpoints", "--job", "job")
    _, _, table = listed.partition("\n\n")
    assert (shown is None) == (table == ""), listed
    if shown is not None:
        titles, row = table.splitlines()
        assert titles.split("  ")[-1] == "WRITTEN BY THE PROGRAM"
        assert row.strip().split("  ") == shown


def test_a_save_that_names_its_path_syncs_measures_and_records_it(alone, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own/deep/deeper").mkdir(parents=True)
    (tmp_path / "own/deep/deeper/model").write_bytes(b"m" * 1000)
    with muster.Manager(state=muster.TrainingState(w=numpy.zeros(4))) as manager:
        manager.restore()
        with pytest.raises(muster.UsageError, match="path 'own' is of no save; call should_save"):
            manager.save(0, force=True, path="own")
        assert manager.should_save(0, force=True)
        for path in ("gone", ""):
            says = f"path '{path}' is not there; write it before you call save"
            with pytest.raises(muster.ArgumentError, match=says):
                manager.save(0, path=path)
        assert manager.save(0, path="own", metadata={"note": 1})
        place = {"path": str(tmp_path / "own"), "bytes": 1000}
        assert manager.metadata(0).metadata == {"note": 1, **place}
        assert json.loads(alone.muster("latest", "--job", "job", "--json"))["checkpoint"][
            "written"
        ] == place
    assert {os.path.relpath(path, tmp_path) for path in synced} >= {
        ".",
        "own",
        "own/deep",
        "own/deep/deeper",
        "own/deep/deeper/model",
    }


def test_a_path_that_cannot_be_synced_fails_its_save_alone(alone, tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    own = tmp_path / "own"
    own.write_bytes(b"m" * 1000)
    with muster.Manager(state=muster.TrainingState(w=numpy.zeros(4))) as manager:
        manager.restore()
        assert manager.should_save(0, force=True)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(muster.SaveError, match="own could not be synced .* No space left"):
                manager.save(0, path=own)
        assert manager.should_save(1, force=True) and manager.save(1, path=own)
        assert [info.step for info in manager.all_steps()] == [1]
    failed, saved = sorted(alone.client.rounds("job"), key=lambda row: row.round)
    assert (failed.state, saved.state) == ("aborted", "committed")
    told = alone.muster("why", "round", str(failed.round), "--job", "job")
    assert f"{own} could not be synced to the disk: [Errno 28] No space left" in told, told


@pytest.mark.parametrize("how", ["fails", "sync", "raises", "forgets", "gone"])
def test_a_save_of_ones_own_that_failed_at_the_end_is_not_committed(alone, tmp_path, monkeypatch, how):
    """The program leaves without another step, and what it wrote may be torn."""

    def unreadable(path):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    own = tmp_path / "own"
    own.write_bytes(b"m" * 1000)
    state = muster.TrainingState(**({} if how == "forgets" else {"w": numpy.zeros(4)}))
    raises = {
        "raises": RuntimeError,
        "gone": muster.ArgumentError,
        "forgets": muster.UsageError,
    }.get(how)
    ends = pytest.raises(raises) if raises else contextlib.nullcontext()
    with ends, muster.Manager(state=state) as manager:
        manager.restore()
        assert manager.should_save(0, force=True) and manager.save(0, path=own)
        assert manager.should_save(1, force=True)
        if how == "fails":
            manager.fail_save("no room for the weights")
            assert not manager.save(1, path=own)
        elif how == "sync":
            monkeypatch.setattr(_progress, "_is_file", unreadable)
            with pytest.raises(muster.SaveError, match="could not be synced .* Stale file handle"):
                manager.save(1, path=own)
        elif how == "raises":
            raise RuntimeError("in the middle of the weights")
        elif how == "gone":
            manager.save(1, path=tmp_path / "gone")
    states = {row.step: row.state for row in alone.client.checkpoints("job")}
    assert states[1] == "committed" and states.get(2) != "committed", states
    (_, last) = sorted(alone.client.rounds("job"), key=lambda row: row.round)
    assert last.state == "aborted"
    (node,) = alone.client.nodes("job")
    assert (node.exit_code == 0) == (how in ("fails", "sync"))


def test_a_state_is_saved_by_a_program_that_closes_where_it_is_to_be_saved(alone):
    """It hears that it is preempted, and leaves its loop without save."""
    state = muster.TrainingState(w=numpy.zeros(4))
    with pytest.raises(muster.Preempted), muster.Manager(state=state) as manager:
        manager.restore()
        manager.notify(left=0)
        step = 0
        while not manager.should_save(step):
            step += 1
        assert manager.reached_preemption(step)
    (row,) = alone.client.checkpoints("job")
    assert (row.state, row.step) == ("committed", step + 1)


def test_a_failed_save_of_ones_own_is_not_committed_without_a_broker(alone, monkeypatch):
    monkeypatch.setenv("MUSTER_BROKER", "tcp://127.0.0.1:1")
    state = muster.TrainingState(w=numpy.zeros(4))
    options = {"state": state, "offline_ok": True, "connect_timeout": 0.2}
    for fails in (True, False):
        ends = contextlib.nullcontext() if fails else pytest.raises(muster.Preempted)
        with ends, muster.Manager(**options) as manager:
            assert manager.restore() is None
            manager.notify(left=1)
            step = next(step for step in range(10**6) if manager.should_save(step))
            if fails:
                manager.fail_save("no room for the weights")
    with muster.Manager(**options) as manager:
        assert manager.restore().step == step


def test_a_close_makes_no_checkpoint_for_a_program_that_writes_its_own(alone):
    """A notice comes at its last step, as it leaves its loop: there is nothing whole to save. If it
    has closed before the freeze asks it, that is told; if not, it has finished before the save.
    """
    own = alone.directory / "own"
    own.write_bytes(b"m" * 1000)
    says = None
    try:
        with muster.Manager(state=muster.TrainingState()) as manager:
            manager.restore()
            assert manager.should_save(0, force=True) and manager.save(0, path=own)
            assert not manager.should_save(1)
            manager.notify(left=0)
    except RuntimeError as error:
        says = str(error)
    assert says is None or "has ended, and wrote no checkpoint of its 2 steps" in says
    (row,) = [row for row in alone.client.checkpoints("job") if row.state == "committed"]
    assert row.step == 1
    with muster.Manager(state=muster.TrainingState()) as manager:
        assert manager.restore().step == 0
        assert manager.metadata(0).metadata["path"] == str(own)


def test_a_step_whose_own_save_failed_is_asked_about_no_more(alone):
    with muster.Manager(state=muster.TrainingState()) as manager:
        manager.restore()
        assert manager.should_save(0, force=True)
        with pytest.raises(muster.Error, match="left out"):
            manager.should_save(7)
        with pytest.raises(muster.Error, match="metric"):
            manager.save(0, metrics={"a b": 1.0})
        manager.fail_save("no room")  # it is owed still
        assert not manager.should_save(0, force=True) and not manager.save(0)
        assert manager.should_save(1, force=True) and manager.save(1)


def test_what_another_rank_renames_while_it_is_counted_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "5/a/b").mkdir(parents=True)
    (tmp_path / "5/a/b/part").write_bytes(bytes(100))
    walk = _progress._walk(tmp_path / "5")
    assert next(walk) == (str(tmp_path / "5"), False)
    (tmp_path / "5/a").rename(tmp_path / "5/c")
    assert list(walk) == []
    assert _progress.size(tmp_path / "5") == 100

    def gone(progress):
        raise FileNotFoundError

    told = []
    monkeypatch.setattr(
        _progress, "lib", SimpleNamespace(muster_node_save_progress=lambda _, n: told.append(n))
    )
    monkeypatch.setattr(_progress, "_PERIOD", 0.01)
    monkeypatch.setattr(_progress.Progress, "_size", gone)
    progress = _progress.Progress(None, tmp_path / "5")
    await_that("what it tells in any case", lambda: len(told) >= 3)
    progress.stop()


def test_verify_and_latest_tell_where_a_program_wrote_by_itself(alone, tmp_path):
    written = tmp_path / "checkpoint-0"
    written.mkdir()
    (written / "model").write_bytes(b"m" * 1000)
    elsewhere = _elsewhere.Elsewhere()
    assert elsewhere.ask(0, wanted=True)
    assert elsewhere.commit(0, str(written), writer=True, metrics={})
    elsewhere.close()
    place = {"path": str(written), "bytes": 1000}
    (row,) = alone.client.checkpoints("job")
    for verb in ("latest", "why"):
        told = json.loads(alone.muster(verb, "--job", "job", "--json"))
        assert told["checkpoint"]["written"] == place, told
    assert f"own files (1.0 kB) are in {written}" in alone.muster("why", "--job", "job")
    found = {**place, "checkpoint": row.checkpoint, "step": 0, "bytes_found": 1000}
    verify = ("verify", "--job", "job")
    assert json.loads(alone.muster(*verify, "--json"))["written"] == [found]
    assert f"1.0 kB in {written}: only its size was compared" in alone.muster(*verify)
    (written / "optimizer").write_bytes(b"o")  # as another rank that is later does
    assert "0 damaged" in alone.muster(*verify)
    (written / "optimizer").unlink()
    (written / "model").write_bytes(b"m" * 999)
    torn = alone.muster(*verify, code=1)
    assert f"damaged: {written} " in torn and "holds 999 of the 1000 bytes" in torn, torn
    shutil.rmtree(written)
    gone = alone.muster(*verify, code=1)
    assert f"damaged: {written} " in gone and "it is not there" in gone, gone


def test_the_record_of_what_a_program_deleted_goes_too(alone, tmp_path):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(2):
        written = tmp_path / f"checkpoint-{step}"
        written.write_bytes(b"m" * 1000)
        assert elsewhere.ask(step, wanted=True)
        assert elsewhere.commit(step, str(written), writer=True, metrics={})
    (tmp_path / "checkpoint-0").unlink()
    elsewhere.forget_gone()
    assert [info.step for info in elsewhere.manager.all_steps()] == [1]
    assert "1 checkpoint of job job" in alone.muster("verify", "--job", "job")
    elsewhere.close()


def test_all_ranks_hear_why_a_programs_own_save_failed(world):
    launch = world.run(2, "own_save.py")
    launch.finish()
    why = "the program could not save step 0: No space left in gs://bucket"
    assert re.search(f"told: .*{why}", launch.log(1)), launch.log(1)
    failed, saved = sorted(world.client.rounds("job"), key=lambda row: row.round)
    assert (failed.state, saved.state) == ("aborted", "committed")
    assert failed.culprit_rank == 0
    assert why in world.muster("events", "--job", "job")
    assert why in world.muster("why", "round", str(failed.round), "--job", "job")


def test_every_call_of_a_manager(alone):
    state = muster.TrainingState(w=numpy.zeros(4))
    with muster.Manager(state=state, save=[muster.SaveSteps([1, 2])]) as manager:
        assert manager.restore() is None and manager.latest_step() is None
        assert not manager.save(0) and manager.should_save(1)
        assert (
            manager.save(1, metrics={"loss": 2.0})
            and manager.save(2)
            and manager.should_save(3, force=True)
            and manager.save(3)
        )
        assert not manager.reached_preemption(3) and not manager.is_saving
        manager.check_for_errors()
        manager.pin(1, lease=60)
        with pytest.raises(muster.Error, match="pin"):
            manager.delete(1)
        manager.unpin(1)
        manager.delete(1)
        assert [info.step for info in manager.all_steps()] == [2, 3]
        with pytest.raises(muster.Error) as caught:
            manager.metadata(1)
        assert caught.value.name == "MUSTER_E_NOT_FOUND"
        with pytest.raises(muster.Error, match="left out"):
            manager.save(7)
        assert "rank 0 of 1" in repr(manager)
    with pytest.raises(muster.ArgumentError, match="this muster.Manager is closed; open another"):
        manager.save(4)
    with pytest.raises(muster.ArgumentError, match="this muster.Manager is closed; open another"):
        manager.should_save(4)
    with muster.Manager(state=state) as manager:
        with pytest.raises(muster.Error, match="call Manager.restore before the first step"):
            manager.should_save(2)
        found = manager.restore(2)
        assert (found.step, found.epoch, found.fell_back) == (2, None, False)
        manager.notify(left=0)
        with pytest.raises(muster.Preempted) as preempted:
            for step in range(3, 10**9):
                manager.save(step)
        assert preempted.value.code == 42
        with pytest.raises(muster.Preempted):
            manager.close()


def test_a_reader_follows_a_job_that_others_train(world, tmp_path):
    with pytest.raises(muster.NotFoundError, match="no directory"):
        muster.Reader(directory=tmp_path / "nowhere", appear=0.1)
    with pytest.raises(muster.ArgumentError, match="neither"):
        muster.Reader()
    broker, directory = world.env["MUSTER_BROKER"], world.env["MUSTER_CHECKPOINT_DIR"]
    with muster.Reader(job="job", broker=broker) as reader:
        assert reader.next_checkpoint(timeout=0) is None and reader.latest_step() is None
        launch = world.run(1, "train_manager.py", STEPS, SECONDS, tmp_path / "output")
        first = reader.next_checkpoint(timeout=60)
        second = reader.next_checkpoint(timeout=60)
        assert 0 <= first < second
        reader.pin(second, lease=600)
        launch.finish()
        (info,) = [info for info in reader.all_steps() if info.step == second]
        assert info.pinned and reader.metadata(second).path == info.path
        assert list(muster.read(info.path)) == ["w"]
        with muster.Reader(directory=directory) as seen:
            assert seen.latest_step() == seen.next_checkpoint(0) == reader.latest_step()
            with pytest.raises(muster.Error, match="only a broker can hold"):
                seen.pin(second, lease=1)
        reader.unpin(second)
    reader.close()
    with pytest.raises(muster.ArgumentError, match="this muster.Reader is closed; open another"):
        reader.latest_step()


def test_a_policy_of_the_wrong_list_is_named():
    says = "save has KeepLatest.*; give policies named Save"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.Manager(state=muster.TrainingState(), save=[muster.KeepLatest(1)])


def test_a_save_whose_bytes_stand_still_is_told_no_more(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        _progress, "lib", SimpleNamespace(muster_node_save_progress=lambda _, n: told.append(n))
    )
    monkeypatch.setattr(_progress, "_PERIOD", 0.01)
    (tmp_path / "5.being-written").mkdir()
    progress = _progress.Progress(None, tmp_path / "5", patience=0.045)
    await_that("the patience", lambda: len(told) == 4)
    (tmp_path / "5.being-written/part").write_bytes(bytes(100))
    await_that("another", lambda: len(told) == 9)
    progress.stop()
    assert told == [1, 2, 3, 4, 100, 101, 102, 103, 104]
    endless = _progress.Progress(None, None, patience=None)
    await_that("what has no end", lambda: len(told) >= 30)
    endless.stop()


def test_A6_ctrl_c_does_not_wait_until_all_files_of_a_save_are_counted(tmp_path, monkeypatch):
    begun, is_file = threading.Event(), _progress._is_file

    def slow_is_file(path):  # of a disk far away
        begun.set()
        time.sleep(0.02)
        return is_file(path)

    (tmp_path / "5").mkdir()
    for number in range(300):
        (tmp_path / f"5/{number}").touch()
    monkeypatch.setattr(_progress, "_is_file", slow_is_file)
    monkeypatch.setattr(_progress, "_PERIOD", 0.01)
    progress = _progress.Progress(None, tmp_path / "5")
    assert begun.wait(30)
    began = time.monotonic()
    progress.stop()  # as a manager's save does whose wait is broken off
    assert time.monotonic() - began < 1.0


def test_a_policy_outside_of_a_list_is_refused_by_name():
    state = muster.TrainingState(w=numpy.zeros(4))
    says = r"keep is KeepLatest\(number=3\); give a list of policies"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.Manager(state=state, keep=muster.KeepLatest(3))


REFUSES = """
import os, pathlib, sys, time
import muster

def restore(context):
    if context.rank == 1:
        raise OSError("no room for the weights")

def save(context):
    (context.directory / "w").write_text("w")

gone = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
rank = os.environ["MUSTER_RANK"]
while rank == "0" and gone and not gone.exists():
    time.sleep(0.01)
try:
    with muster.Manager(save_fn=save, restore_fn=restore, layout="sharded") as manager:
        manager.restore()
        manager.save(manager.steps_done, force=True)
finally:
    if rank == "1" and gone:
        gone.touch()
"""


@pytest.mark.parametrize("late", [False, True])
def test_A7_an_exception_in_restore_fn_is_told_to_the_other_ranks(world, late):
    """Also to one whose program takes longer to start than the launch lasts."""
    program = world.directory / "program.py"
    program.write_text(REFUSES)
    world.run(2, program).finish()
    arguments = (world.directory / "gone",) if late else ()
    launch = world.run(2, program, *arguments, options=("--max-failures", "0"))
    assert launch.end() != 0
    assert "OSError: no room for the weights" in launch.log(0), launch.logs()
    assert "OSError: no room for the weights" in launch.stderr
    why = world.muster("why", "--job", "job")
    assert "restore failed, rank 1" in why and "OSError: no room for the weights" in why, why


def notified_in_a_save(world, steps, left):
    """The logs of both ranks, and the cause of the save in which rank 1 is notified."""
    launch = world.run(2, "late_notice.py", world.directory, steps)

    def saved():
        rows = world.client.participants("job", 1)
        return [row.rank for row in rows if row.saved_s is not None] == [0]

    await_that("the save of rank 0", saved)
    world.client.notify("job", 1, left=left)
    (world.directory / "go").touch()
    launch.finish()
    (round_,) = world.client.round("job", 1)
    assert round_.state == "committed"
    logs = [[line.split()[-1] for line in launch.log(rank).splitlines()] for rank in (0, 1)]
    return logs, round_.cause


def test_a_notice_in_a_save_gets_one_of_its_own(world):
    """Rank 0 has saved, and may be in the next step: there all save, and leave together."""
    logs, cause = notified_in_a_save(world, 100, None)
    assert cause == "policy"
    assert logs[0] == logs[1] == [str(step) for step in range(100)]
    rounds = world.client.rounds("job")
    assert [row.state for row in rounds if row.cause == "termination"] == ["committed"]


def test_a_rank_that_saved_before_the_notice_leaves_with_those_that_save_after_it(world):
    """No time is left for another save. One more step would wait for ranks that have left."""
    logs, cause = notified_in_a_save(world, 3, 3.9)
    assert cause == "termination"
    assert logs[0] == logs[1] == ["0", "1", "2"]
