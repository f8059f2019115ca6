"""C4: what a checkpoint holds is read without its job: no broker, no node, sums checked."""

import pathlib
import shutil

import numpy
import pytest
from conftest import await_that

import muster

WEIGHTS = numpy.arange(12.0).reshape(3, 4)


def checkpoint_of(alone, save=None, arrays=None, **options):
    """The path of a checkpoint of these arrays, or of what `save` writes."""
    state = None if arrays is None else muster.TrainingState(arrays)
    restore = None if save is None else lambda context: None
    with muster.Node(state=state, save=save, restore=restore, save_every=1, **options) as node:
        node.set_position(epoch=3)
        node.step()
        node.step()
    latest = await_that(
        "its name", lambda: [row for row in alone.client.latest("job") if row.in_place]
    )
    return pathlib.Path(latest[0].path)


@pytest.fixture
def saved(alone, monkeypatch):
    """A checkpoint whose broker nobody can ask any more."""
    arrays = {
        "w": WEIGHTS.copy(),
        "count": numpy.array(7),
        "none": numpy.zeros((0, 5), "float32"),
        "flags": numpy.array([True, False]),
    }
    path = checkpoint_of(alone, arrays=arrays)
    monkeypatch.setenv("MUSTER_BROKER", "tcp://127.0.0.1:1")
    return path


def test_a_checkpoint_is_a_mapping_of_its_tensors(saved):
    checkpoint = muster.read(saved)
    assert list(checkpoint) == ["count", "flags", "none", "w"] and len(checkpoint) == 4
    assert numpy.array_equal(checkpoint["w"], WEIGHTS) and checkpoint["w"].dtype == "float64"
    assert checkpoint["count"] == 7 and checkpoint["count"].shape == ()
    assert checkpoint["none"].shape == (0, 5) and checkpoint["flags"].tolist() == [True, False]
    assert checkpoint.tensors["w"] == muster.TensorInfo("F64", (3, 4), 96, 1)
    assert checkpoint.step == int(checkpoint.metadata["step"]) > 0
    assert checkpoint.metadata["job"] == "job" and checkpoint.metadata["epoch"] == 3
    assert checkpoint.metadata["data_position"] is None
    (name,) = checkpoint.files
    assert checkpoint.read_file(name) == (saved / name).read_bytes()
    assert checkpoint.files[name].size_bytes == (saved / name).stat().st_size


def test_arrays_are_filled_in_place(saved):
    state = muster.TrainingState(w=numpy.zeros((3, 4)))
    muster.read(saved).load(state)
    assert numpy.array_equal(state["w"], WEIGHTS)
    for wrong in (numpy.zeros((4, 3)), numpy.zeros((3, 4), "float32")):
        with pytest.raises(muster.RestoreError, match='"w" is F64'):
            muster.read(saved).load(muster.TrainingState(w=wrong))
        assert not wrong.any()


def test_what_is_not_there_is_named(saved, tmp_path):
    checkpoint = muster.read(saved)
    with pytest.raises(muster.NotFoundError, match="no tensor 'v' in .*'count', 'flags'"):
        checkpoint["v"]
    with pytest.raises(KeyError):
        checkpoint.read_file("v")
    assert checkpoint.get("v") is None and "v" not in checkpoint
    with pytest.raises(muster.NotFoundError, match='"v"'):
        checkpoint.load(muster.TrainingState(v=numpy.zeros(1)))
    with pytest.raises(muster.NotFoundError, match="there is no checkpoint"):
        muster.read(tmp_path / "nowhere")
    with pytest.raises(muster.RestoreError, match="unfinished"):
        muster.read(saved.parent)
    with pytest.raises(muster.NotFoundError, match="no shard of rank 5"):
        muster.read(saved, rank=5)
    with pytest.raises(muster.ArgumentError, match="rank is -1"):
        muster.read(saved, rank=-1)


def test_a_checkpoint_that_is_deleted_while_it_is_read_is_named_so(saved):
    checkpoint = muster.read(saved)
    shutil.rmtree(saved)
    with pytest.raises(muster.NotFoundError, match="there is no checkpoint"):
        checkpoint["w"]


def test_a_damaged_tensor_is_named_and_the_others_are_read(saved):
    checkpoint = muster.read(saved)
    (name,) = checkpoint.files
    data = bytearray((saved / name).read_bytes())
    data[data.index(WEIGHTS.tobytes()) + 9] ^= 1
    (saved / name).write_bytes(data)
    with pytest.raises(muster.CorruptError, match=f'{name} is damaged in tensor "w"'):
        checkpoint["w"]
    assert checkpoint["count"] == 7
    with pytest.raises(muster.CorruptError, match="its checksum is"):
        checkpoint.read_file(name)
    data[10] ^= 1  # in its header
    (saved / name).write_bytes(data)
    with pytest.raises(muster.CorruptError, match=name):
        muster.read(saved)


def test_what_a_save_callable_wrote_are_files(alone):
    def save(context):
        (context.directory / "model.bin").write_bytes(b"weights")

    path = checkpoint_of(alone, save=save)
    checkpoint = muster.read(path)
    (name,) = checkpoint.files
    assert name.endswith("/model.bin") and checkpoint.read_file(name) == b"weights"
    assert not checkpoint and checkpoint.files[name].rank == 0
    with pytest.raises(muster.NotFoundError, match="the job's own save_fn wrote"):
        checkpoint.load(muster.TrainingState(w=numpy.zeros(1)))
    (path / name).write_bytes(b"weighTs")
    with pytest.raises(muster.CorruptError, match="is damaged"):
        checkpoint.read_file(name)


def test_memory_that_moved_is_refused_by_name_and_not_read_into(saved):
    checkpoint = muster.read(saved)
    wanted = numpy.zeros(WEIGHTS.shape)
    count = numpy.array(5)
    state = muster.TrainingState(w=wanted, count=count)
    wanted.resize((5, 4), refcheck=False)  # other memory, and another shape
    with pytest.raises(muster.ArgumentError, match="state 'w' has other memory than when it was"):
        checkpoint.load(state)
    assert not wanted.any() and count == 5
    wanted = numpy.zeros(WEIGHTS.shape)
    state.remove("w")
    state.add("w", wanted)
    checkpoint.load(state)
    assert numpy.array_equal(wanted, WEIGHTS) and count == 7


def test_a_tensor_that_got_other_memory_is_not_read_into(saved):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.zeros(3, 4, dtype=torch.float64)
    state = muster.TrainingState(w=tensor)
    old = tensor.data
    tensor.data = torch.ones(3, 4, dtype=torch.float64)
    with pytest.raises(muster.ArgumentError, match="state 'w' has other memory than when it was"):
        muster.read(saved).load(state)
    assert not old.any() and bool((tensor == 1).all())


def test_parts_are_put_together_and_each_rank_s_own_is_there(world):
    world.run(3, "train_split.py").finish()
    (path,) = {row.path for row in world.client.latest("job")}
    whole = muster.read(path)
    assert whole.tensors["w"] == muster.TensorInfo("F32", (7, 2), 56, 3, axis=0)
    assert numpy.array_equal(whole["w"], numpy.arange(14, dtype="float32").reshape(7, 2))
    with pytest.raises(muster.RestoreError, match='"own" is not split, and differs between'):
        whole["own"]
    for rank, (begin, count) in enumerate([(0, 3), (3, 2), (5, 2)]):
        part = muster.read(path, rank=rank)
        assert part["own"] == rank and part.tensors["w"].begin == begin
        assert numpy.array_equal(part["w"], whole["w"][begin : begin + count])
    piece = muster.TrainingState()
    piece.add_split("w", numpy.zeros((3, 2), "float32"), (7, 2), 0, 2)
    whole.load(piece)
    assert numpy.array_equal(piece["w"], whole["w"][2:5])


def test_types_that_numpy_lacks_go_there_and_back(alone):
    types = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    arrays = {
        name: numpy.arange(4).astype(getattr(types, name))
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    }
    arrays["scalar"] = numpy.array(1.5, types.bfloat16)
    checkpoint = muster.read(checkpoint_of(alone, arrays=arrays))
    assert checkpoint.tensors["bfloat16"].dtype == "BF16"
    for name, array in arrays.items():
        assert checkpoint[name].dtype == array.dtype and (checkpoint[name] == array).all()
