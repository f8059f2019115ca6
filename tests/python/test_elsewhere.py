"""A program that writes its checkpoints by itself, and deletes older ones by itself."""

import json
import shutil

from muster import _elsewhere


def write(directory, step):
    written = directory / f"checkpoint-{step}"
    written.mkdir()
    (written / "model").write_bytes(b"m" * 1000)
    return written


def save(elsewhere, directory, step):
    written = write(directory, step)
    assert elsewhere.ask(step, wanted=True)
    assert elsewhere.commit(step, str(written), writer=True, metrics={})
    return written


def records(world):
    """The steps that muster's records name; verify finds all of them whole."""
    told = json.loads(world.muster("verify", "--job", "job", "--json"))
    return sorted(row["step"] for row in told["written"])


def test_the_boundary_behind_a_save_forgets_what_the_program_deleted(alone, tmp_path):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(0, 30, 10):
        written = save(elsewhere, tmp_path, step)
        if step > 0:
            shutil.rmtree(tmp_path / f"checkpoint-{step - 10}")
        assert not elsewhere.ask(step + 1, wanted=False)
        assert records(alone) == [elsewhere.number - 1]
    assert elsewhere.latest.path == str(written)
    elsewhere.close()


def test_a_program_that_asks_only_where_it_saves_forgets_at_its_next_save_and_its_end(
    alone, tmp_path
):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(3):
        save(elsewhere, tmp_path, step)
        if step > 0:
            shutil.rmtree(tmp_path / f"checkpoint-{step - 1}")
    assert [info.step for info in elsewhere.manager.all_steps()] == [1, 2]
    elsewhere.close()
    assert records(alone) == [2]


def test_the_next_launch_forgets_what_was_deleted_behind_the_last_save_of_a_killed_one(
    alone, tmp_path
):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(2):
        save(elsewhere, tmp_path, step)
    shutil.rmtree(tmp_path / "checkpoint-0")
    elsewhere.leave(RuntimeError("the host is gone"))
    alone.muster("verify", "--job", "job", code=1)
    elsewhere = _elsewhere.Elsewhere()
    assert elsewhere.latest.step == 1 and not elsewhere.ask(2, wanted=False)
    assert records(alone) == [1]
    elsewhere.close()


def test_what_is_on_a_disk_that_is_not_there_is_kept(alone, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    elsewhere = _elsewhere.Elsewhere()
    for step in range(2):
        save(elsewhere, disk, step)
    disk.rename(tmp_path / "away")
    elsewhere.forget_gone()
    disk.mkdir()  # the place that it is mounted at
    elsewhere.forget_gone()
    assert [info.step for info in elsewhere.manager.all_steps()] == [0, 1]
    disk.rmdir()
    (tmp_path / "away").rename(disk)
    elsewhere.close()
    assert records(alone) == [0, 1]


def test_a_pinned_one_is_kept_and_the_log_says_so(alone, tmp_path, caplog):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(2):
        save(elsewhere, tmp_path, step)
    elsewhere.manager.pin(0, lease=60)
    shutil.rmtree(tmp_path / "checkpoint-0")
    assert not elsewhere.ask(2, wanted=False)
    assert "the record of step 0 is kept" in caplog.text and "pinned" in caplog.text
    assert [info.step for info in elsewhere.manager.all_steps()] == [0, 1]
    elsewhere.manager.unpin(0)
    elsewhere.close()


def test_what_lay_in_another_folder_is_kept(alone, tmp_path):
    """It may be the place of a disk that is not mounted now."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    elsewhere = _elsewhere.Elsewhere()
    save(elsewhere, first, 0)
    save(elsewhere, second, 1)
    shutil.rmtree(first / "checkpoint-0")
    elsewhere.forget_gone()
    assert elsewhere._forgets_behind is None
    assert [info.step for info in elsewhere.manager.all_steps()] == [0, 1]
    elsewhere.close()


def test_a_boundary_forgets_a_few_and_the_next_ones_the_others(alone, tmp_path):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(7):
        save(elsewhere, tmp_path, step)
        elsewhere._forgets_behind = None
    for step in range(6):
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    elsewhere._forgets_behind = -1
    left = []
    for step in range(7, 10):
        assert not elsewhere.ask(step, wanted=False)
        left.append(len(elsewhere.manager.all_steps()))
    assert left == [3, 1, 1]
    elsewhere.close()


def test_a_file_system_that_does_not_answer_ends_no_training(alone, tmp_path, monkeypatch, caplog):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(2):
        save(elsewhere, tmp_path, step)
    shutil.rmtree(tmp_path / "checkpoint-0")

    def stale(path):
        raise OSError(116, "Stale file handle", str(path))

    with monkeypatch.context() as broken:
        broken.setattr(_elsewhere.os, "lstat", stale)
        elsewhere.forget_gone()
        assert elsewhere._forgets_behind is None
    assert "Stale file handle" in caplog.text
    assert [info.step for info in elsewhere.manager.all_steps()] == [0, 1]
    elsewhere.close()


def test_those_that_are_pinned_hold_up_no_others_and_are_asked_for_once(alone, tmp_path, caplog):
    elsewhere = _elsewhere.Elsewhere()
    for step in range(7):
        save(elsewhere, tmp_path, step)
        elsewhere._forgets_behind = None
    for step in range(5):
        elsewhere.manager.pin(step, lease=60)
    for step in range(6):
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    elsewhere._forgets_behind = -1
    for step in range(7, 10):
        assert not elsewhere.ask(step, wanted=False)
    assert [info.step for info in elsewhere.manager.all_steps()] == [0, 1, 2, 3, 4, 6]
    assert caplog.text.count("is kept") == 5
    elsewhere.close()
