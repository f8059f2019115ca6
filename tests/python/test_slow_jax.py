"""muster.jax and muster.orbax in one process: what they save, keep, resume and refuse."""
# needs: jax
# needs: orbax.checkpoint

import json
import os
import shutil
import signal
import time

import jax
import numpy
import orbax.checkpoint as ocp
import pytest
from conftest import PATIENCE
from jax.experimental import multihost_utils

import muster.jax
import muster.orbax


@pytest.fixture(autouse=True)
def each_in_its_directory(alone, monkeypatch):
    monkeypatch.delenv("MUSTER_CHECKPOINT_DIR")


def state(step):
    return ocp.args.StandardSave({"w": numpy.full(8, step)})


def opened(path, **options):
    job = {"job": path.name}
    return muster.orbax.CheckpointManager(
        path, options=ocp.CheckpointManagerOptions(**options), muster=job
    )


def saved(manager, steps, metrics=None):
    """What save says of each step, and what there is then."""
    with manager:
        said = [
            manager.save(step, args=state(step), metrics=metrics and metrics(step))
            for step in steps
        ]
        manager.wait_until_finished()
        return said, list(manager.all_steps()), manager.latest_step(), manager.best_step()


@pytest.mark.parametrize(
    "options",
    [
        {"save_interval_steps": 3, "max_to_keep": 2},
        {"max_to_keep": 1, "keep_period": 4, "enable_async_checkpointing": False},
        {"save_on_steps": [1, 5], "save_interval_steps": 100, "step_prefix": "at"},
        {"max_to_keep": 2, "best_fn": lambda metrics: metrics["gain"]},
    ],
)
def test_it_saves_and_keeps_what_orbax_does(tmp_path, options):
    def metrics(step):
        return {"gain": float(step // 2)}

    plain = ocp.CheckpointManager(
        tmp_path / "plain", options=ocp.CheckpointManagerOptions(**options)
    )
    expected = saved(plain, range(10), metrics)
    assert saved(opened(tmp_path / "ours", **options), range(10), metrics) == expected
    with opened(tmp_path / "ours", **options) as manager:
        assert list(manager.all_steps()) == expected[1]
        restored = manager.restore(None, args=ocp.args.StandardRestore())
        assert restored["w"].tolist() == [manager.latest_step()] * 8
        names = {path.name for path in (tmp_path / "ours").iterdir()} - {"muster"}
        assert names == {path.name for path in (tmp_path / "plain").iterdir()}


def test_the_newest_step_is_kept_whatever_is_best(tmp_path):
    options = {"max_to_keep": 1, "best_fn": lambda metrics: metrics["gain"]}
    said, steps, latest, best = saved(
        opened(tmp_path / "job", **options), range(4), lambda step: {"gain": -float(step)}
    )
    assert all(said) and steps == [0, 3] and (latest, best) == (3, 0)


def test_a_program_may_call_each_hundredth_step_and_resumes_there(world, tmp_path):
    assert saved(opened(tmp_path / "job"), [100, 200, 300])[1] == [100, 200, 300]
    with opened(tmp_path / "job") as manager:
        assert manager.latest_step() == 300
        assert manager.save(400, args=state(400))
    rows = world.client.checkpoints("job")
    assert {row.custom for row in rows if "400" in row.custom}


def test_should_save_force_and_a_step_that_is_there(tmp_path):
    with opened(tmp_path / "job", save_interval_steps=10) as manager:
        assert manager.should_save(0) and manager.save(0, args=state(0))
        assert not manager.should_save(1) and not manager.reached_preemption(1)
        assert manager.save(1, args=state(1), force=True)
        assert not manager.save(1, args=state(1))
        with pytest.raises(ocp.checkpoint_manager.StepAlreadyExistsError):
            manager.save(1, args=state(1), force=True)
        assert manager.metadata(1).custom_metadata["muster"]["step"] == 2
        assert list(manager.all_steps()) == [0, 1]


def test_what_orbax_saved_before_muster_is_resumed(tmp_path):
    saved(ocp.CheckpointManager(tmp_path / "job"), [4, 5])
    with opened(tmp_path / "job") as manager:
        assert manager.latest_step() == 5
        assert manager.save(6, args=state(6))
    with opened(tmp_path / "job") as manager:
        assert list(manager.all_steps()) == [4, 5, 6]


def test_what_orbax_saved_beside_muster_or_lost_is_refused_by_name(tmp_path):
    saved(opened(tmp_path / "job"), [1, 2])
    saved(ocp.CheckpointManager(tmp_path / "job"), [7])
    says = "job/7 was saved without muster, .*; move it elsewhere .* or start another job"
    with pytest.raises(muster.UsageError, match=says):
        opened(tmp_path / "job")
    (tmp_path / "job/7").rename(tmp_path / "7")
    (tmp_path / "job/2").rename(tmp_path / "2")
    says = "job/2, which muster's checkpoint in .* is gone; put it back, or start another job"
    with pytest.raises(muster.MissingFileError, match=says):
        opened(tmp_path / "job")


def test_an_exception_while_orbax_writes_is_told_and_leaves_the_job(world, tmp_path):
    manager = opened(tmp_path / "job")
    with pytest.raises(ValueError):
        manager.save(0, args=ocp.args.Composite(metrics=state(0)))
    with pytest.raises(muster.ArgumentError, match="this job was left already; make another"):
        manager.save(1, args=state(1))
    manager.close()
    assert "ValueError" in world.muster("why", "--job", "job")


def whole(world, job):
    """The steps of the program's own that muster's records name; verify finds all of them whole."""
    told = json.loads(world.muster("verify", "--job", job, "--json"))
    return sorted(int(row["path"].rpartition("/")[2]) for row in told["written"])


def test_what_a_program_deletes_of_Orbax_is_forgotten(world, tmp_path):
    with opened(tmp_path / "job", max_to_keep=3) as manager:
        assert all(manager.save(step, args=state(step)) for step in range(4))
        assert whole(world, "job") == [1, 2, 3]
        manager.delete(1)
        shutil.rmtree(tmp_path / "job/2")  # as another process does
        assert manager.save(4, args=state(4))
        assert whole(world, "job") == [3, 4]
        manager.delete(3)
    assert whole(world, "job") == [4]


def test_what_a_program_of_JAX_deletes_is_forgotten(world, tmp_path):
    with muster.jax.PreemptionSync(tmp_path / "muster") as sync:
        for step in range(3):
            (path := tmp_path / str(step)).touch()
            assert sync.saved(step, path)
            if step > 0:
                (tmp_path / str(step - 1)).unlink()
        assert not sync.reached(3)
        assert whole(world, "job") == [2]


def test_a_reader_takes_no_part(tmp_path):
    saved(opened(tmp_path / "job"), [1])
    with opened(tmp_path / "job", read_only=True) as reader:
        assert reader.latest_step() == 1 and not reader.save(2, args=state(2))
        with opened(tmp_path / "job") as manager:
            assert manager.save(2, args=state(2))


def test_what_cannot_be_is_refused_by_name(tmp_path, monkeypatch):
    with pytest.raises(muster.ArgumentError, match="set MUSTER_CHECKPOINT_DIR to a directory"):
        muster.orbax.CheckpointManager("gs://bucket/run")
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    says = "job has 1 ranks and JAX 2 processes, .*; call muster.jax.initialize.* first"
    with pytest.raises(muster.UsageError, match=says):
        muster.jax.PreemptionSync(tmp_path / "muster")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(muster.UsageError, match="know no place to meet; set MASTER_ADDR"):
        muster.jax.initialize()


def test_JAXs_question_is_answered_by_the_job(tmp_path, monkeypatch):
    jax.devices()
    monkeypatch.setattr(jax._src.distributed.global_state, "client", object())
    with pytest.raises(muster.Preempted), muster.jax.PreemptionSync(tmp_path / "muster") as sync:
        assert sync.latest is None
        assert not multihost_utils.reached_preemption_sync_point(0)
        assert sync.saved(0, tmp_path) and sync.latest.step == 0
        os.kill(os.getpid(), signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        step = 1
        while not multihost_utils.reached_preemption_sync_point(step):
            step += 1
            assert time.monotonic() < until
        assert not multihost_utils.reached_preemption_sync_point(step - 1)
        (path := tmp_path / "written").touch()
        sync.saved(step, path)
    with muster.jax.PreemptionSync(tmp_path / "muster") as sync:
        assert (sync.latest.step, sync.latest.path) == (step, str(path))
    path.unlink()
    with pytest.raises(FileNotFoundError, match="is gone; put it back"):
        muster.jax.PreemptionSync(tmp_path / "muster")
