"""PyTorch's DistributedDataParallel, preempted and resumed. PyTorch is a download of 3 GB: slow."""
# needs: torch
# needs: torchdata

import json
import os
import pathlib
import re
import signal

import pytest
import torch
from conftest import HERE, World, await_that, digests, without_muster

import muster.dcp
import muster.torch

STEPS, SECONDS = 200, 0.05
PATIENCE = 180.0  # launches that each import PyTorch, on two loaded cores


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("uninterrupted"))
    world.run(2, "train_ddp.py", STEPS, 0, world.directory / "digests").finish(PATIENCE)
    world.end()
    return digests(world.directory / "digests")


@pytest.mark.parametrize("how", ["notice", "signal"])
def test_A5_ddp_is_preempted_and_ends_with_the_bits_of_an_uninterrupted_run(world, uninterrupted, how):
    launch = world.run(2, "train_ddp.py", STEPS, SECONDS, world.directory / "digests")
    nodes = world.await_step(10, ranks=2, patience=PATIENCE)
    if how == "notice":
        world.muster("notify", "--job", "job", "1", "--text", "the host goes away")
    else:
        os.kill(nodes[1].pid, signal.SIGTERM)
    launch.finish(PATIENCE)
    launch.ended(2, launches=2)  # A9
    assert digests(world.directory / "digests") == uninterrupted
    assert "resumed True" in launch.log(0) and "resumed True" in launch.log(1)
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}
    own = [text.split() for text in uninterrupted.values()]
    assert own[0][0] == own[1][0] and own[0][1] != own[1][1]  # weights alike, random numbers not
    assert own[0][2] == str(STEPS)


def swap(folder):
    """What the two ranks saved, in a checkpoint whose manifest fits it: one without a checksum of
    its own, as muster's first ones were.
    """
    parts = sorted(folder.glob("shard-*/rank.pt"))
    aside = folder / "aside"
    for old, new in ((parts[0], aside), (parts[1], parts[0]), (aside, parts[1])):
        old.rename(new)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["checksum"], manifest["database"]
    one, two = (shard["files"][0] for shard in manifest["shards"])
    for name in ("bytes", "checksum"):
        one[name], two[name] = two[name], one[name]
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_A5_control_ranks_that_get_each_other_s_state_do_not_end_with_these_bits(
    world, uninterrupted, tmp_path
):
    launch = world.run(2, "train_ddp.py", STEPS, SECONDS, world.directory / "digests")
    world.await_step(10, ranks=2, patience=PATIENCE)
    launch.process.send_signal(signal.SIGTERM)
    assert launch.end(PATIENCE) == 42
    (row,) = [row for row in world.client.checkpoints("job") if row.state == "committed"]
    checkpoints = world.env["MUSTER_CHECKPOINT_DIR"]
    swap(pathlib.Path(checkpoints, row.path))
    assert "is damaged" in world.muster("verify", "--job", "job", code=1)  # by this broker's rows
    (tmp_path / "other").mkdir()
    other = World(tmp_path / "other")  # a broker that knows nothing of it
    try:
        other.env["MUSTER_CHECKPOINT_DIR"] = checkpoints
        other.muster("import", checkpoints, "--job", "job")
        launch = other.run(2, "train_ddp.py", STEPS, 0, other.directory / "digests")
        launch.finish(PATIENCE)
        assert "resumed True" in launch.log(0) and "resumed True" in launch.log(1)
        ended = digests(other.directory / "digests")
    finally:
        other.end()
    assert ended == {"0": uninterrupted["1"], "1": uninterrupted["0"]} != uninterrupted


def test_A5_a_loader_with_workers_draws_no_more_random_numbers_than_uninterrupted(world, tmp_path):
    def train(world, seconds):
        program = ("train_ddp.py", 80, seconds, world.directory / "digests")
        return world.run(2, *program, env={"WORKERS": "1"})

    whole = tmp_path / "whole"
    whole.mkdir()
    apart = World(whole)
    train(apart, 0).finish(PATIENCE)
    apart.end()
    launch = train(world, SECONDS)
    world.await_step(30, ranks=2, patience=PATIENCE)  # in the second epoch of four
    world.muster("notify", "--job", "job", "1")
    launch.finish(PATIENCE)
    assert "2 launches, 1 preemption" in launch.stderr
    assert digests(world.directory / "digests") == digests(whole / "digests")


@pytest.mark.parametrize("of", ["torch", "dcp"])
def test_A5_a_layout_in_which_a_rank_gets_another_s_random_numbers_is_refused(of):
    says = "layout is 'replicated', with which every rank would get .*; leave it out"
    with pytest.raises(muster.ArgumentError, match=says):
        if of == "dcp":
            muster.dcp.Checkpointer(model=torch.nn.Linear(1, 1), layout="replicated")
        else:
            muster.torch.Checkpointer(layout="replicated")


def test_A2_the_example_ends_with_the_bits_of_what_it_was_before_muster(world, tmp_path):
    example = HERE.parent.parent / "client/python/examples/torch_ddp.py"
    (tmp_path / "plain.py").write_text(without_muster(example)[0])
    plain = world.run(2, tmp_path / "plain.py", 100, 0)
    plain.finish(PATIENCE)
    told = re.search(r"100 steps, weights \w+", plain.log(0)).group(0)
    launch = world.run(2, example, 100, 0.05, options=("--max-failures", "0"))
    world.await_step(10, ranks=2, patience=PATIENCE)
    world.muster("notify", "--job", "job", "1")
    launch.finish(PATIENCE)
    assert "2 launches, 1 preemption" in launch.stderr
    assert told in launch.log(0) and told in launch.log(1)


PRELUDE = """
import time
import torch
torch.manual_seed(1)
dataset = torch.randn(192, 16)
Net = lambda: torch.nn.Linear(16, 1)
"""


def test_the_program_of_the_page_goes_on_where_it_was_preempted(world):
    page = (HERE.parent.parent / "client/python/README.md").read_text()
    (block,) = re.search(r"^## PyTorch\n\n```python\n(.*?)```", page, re.DOTALL | re.M).groups()
    program = world.directory / "program.py"
    tells = "        print('step', step, flush=True); time.sleep(0.1)\n        loss ="
    block = block.replace("ck.steps(10_000)", "ck.steps(30)").replace("        loss =", tells)
    trained = world.directory / "trained.pt"
    block = block.replace("trained.pt", str(trained)).replace("=500", "=4")
    program.write_text(PRELUDE + block)
    launch = world.run(2, program, options=("--max-failures", "0"))
    world.await_step(5, ranks=2, patience=PATIENCE)
    world.muster("notify", "--job", "job", "1")
    launch.finish(PATIENCE)
    assert "2 launches, 1 preemption" in launch.stderr
    steps = re.findall(r"^step (\d+)$", launch.log(0), re.M)
    assert list(map(int, steps)) == list(range(30))  # in ten epochs, each step once
    assert torch.load(trained)["weight"].shape == (1, 16)
    kept = {int(path.name) for path in (world.directory / "checkpoints").glob("[0-9]*")}
    assert kept >= {24, 28} and len(kept) == 3  # one of them may be the preemption's


def test_a_state_that_only_a_pickle_holds_is_refused_by_name(world):
    class Odd:
        def state_dict(self):
            return {"when": [1, object()]}

        def load_state_dict(self, state):
            pass

    says = r"odd\['when'\]\[1\] is a builtins.object, .*; make it tensors.* or give allow_pickle"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.torch.Checkpointer(others={"odd": Odd()})
    says = "model is a Tensor without state_dict and load_state_dict; give an object that has both"
    with pytest.raises(muster.ArgumentTypeError, match=says):
        muster.torch.Checkpointer(model=torch.zeros(1))


class Plain:
    """A part with whatever state."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return {"state": self.state}

    def load_state_dict(self, state):
        self.state = state["state"]


@pytest.mark.parametrize(
    ("saved", "now", "says"),
    [
        (
            {"model": torch.nn.Linear(4, 1)},
            {"model": torch.nn.Linear(5, 1)},
            r"(?s)model does not fit the checkpoint: RuntimeError: .*size mismatch for weight",
        ),
        (
            {"data": Plain(pathlib.PurePosixPath("a pickle")), "allow_pickle": True},
            {"data": Plain(0)},
            r"rank\.pt holds values that only a pickle can hold, .* give allow_pickle=True if you trust",
        ),
        ({"model": torch.nn.Linear(4, 1)}, {"data": Plain(0)}, "differ in data, model; give the same"),
    ],
)
def test_what_cannot_be_restored_is_refused_by_name_with_what_to_do(alone, saved, now, says):
    with muster.torch.Checkpointer(**saved, save_every=1) as ck:
        ck.restore()
        ck.step()
        ck.step()
    with pytest.raises(muster.Error, match=says) as caught:
        with muster.torch.Checkpointer(**now) as ck:
            ck.restore()
    assert isinstance(caught.value, (muster.RestoreError, muster.NotFoundError))


class MakesAFile:
    """Its pickle makes this file when it is loaded."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mknod, (self.path,)


@pytest.mark.parametrize("of", [muster.torch, muster.dcp])
def test_a_pickle_that_makes_a_file_makes_none_unless_it_is_allowed_and_whole(alone, tmp_path, of):
    made = tmp_path / "made"
    part = Plain(MakesAFile(made))

    def restored(data, **options):
        ck = of.Checkpointer(model=torch.nn.Linear(4, 1), data=data, save_every=1, **options)
        with ck:
            ck.restore()
            if data is part:
                ck.step(), ck.step()

    restored(part, allow_pickle=True)  # so its sums fit
    says = r"rank\.pt holds values that only a pickle .* give allow_pickle=True if you trust"
    with pytest.raises(muster.RestoreError, match=says):
        restored(Plain(0))
    assert not made.exists()
    restored(Plain(0), allow_pickle=True)
    assert made.exists()
    made.unlink()
    (file,) = (tmp_path / "checkpoints").glob("1/*/rank.pt")
    data = file.read_bytes()
    assert b"/made" in data
    file.write_bytes(data.replace(b"/made", b"/evil"))
    with pytest.raises(muster.RestoreError, match="rank.pt is damaged: its checksum .* put them"):
        restored(Plain(0), allow_pickle=True)
    assert not made.exists() and not made.with_name("evil").exists()


@pytest.mark.parametrize("where", ["__getitem__", "worker_init_fn"])
def test_a_worker_of_a_loader_that_calls_muster_raises_muster_s_own_error(alone, where):
    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return ck.step() if where == "__getitem__" else index

    with muster.torch.Checkpointer(model=torch.nn.Linear(4, 1)) as ck:
        ck.restore()
        calls = {"worker_init_fn": lambda number: ck.step()} if where != "__getitem__" else {}
        loader = torch.utils.data.DataLoader(
            Items(), num_workers=1, multiprocessing_context="fork", **calls
        )
        told = "(?s)DataLoader worker process 0.*forked from the manager's"
        with pytest.raises(muster.ForkedError, match=told) as caught:
            list(loader)
        assert caught.value.name == "MUSTER_E_FORKED"
        assert caught.value.advice == "open another node in the child, or do not call muster there"
        ck.step()
        assert ck.node.steps_done == 1


@pytest.mark.parametrize("of", [muster.torch, muster.dcp])
@pytest.mark.parametrize(("kind", "name"), [("Linear", "weight"), ("BatchNorm1d", "running_mean")])
def test_a_model_without_values_is_refused_by_name(of, kind, name):
    model = getattr(torch.nn, kind)(2, 2).to("meta")
    if kind == "BatchNorm1d":  # its buffers alone have none
        model.weight, model.bias = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    with pytest.raises(muster.ArgumentError, match=f"'{name}' of the model is on the device meta"):
        of.Checkpointer(model=model)


def test_tensors_of_a_state_are_filled_in_place():
    tensor = torch.zeros(3, dtype=torch.bfloat16)
    assert muster.TrainingState(w=tensor).size_bytes == 6
    says = "state 'w' is not contiguous; give its contiguous"
    with pytest.raises(muster.ArgumentError, match=says):
        muster.TrainingState(w=torch.zeros(4, 4).T[:2])


@pytest.mark.parametrize("of", ["torch", "dcp", "accelerate"])
def test_keep_leaves_what_its_policies_want_on_the_disk_and_nothing_else(world, of):
    launch = world.run(2, "train_kept.py", of, 40, options=("--max-failures", "0"))
    launch.finish(PATIENCE)
    kept = {int(path.name) for path in (world.directory / "checkpoints").glob("[0-9]*")}
    assert kept == {5, 30, 35}, launch.logs()  # the best by loss, and the newest two
    assert {row.state for row in world.client.checkpoints("job")} == {"committed", "deleted"}
    newest = (world.directory / "checkpoints/35").rglob("*")
    copies = sum(path.stat().st_size for path in newest if path.is_file()) / 1_200_000
    assert round(copies) == (2 if of == "torch" else 1)  # of model and optimizer, by two ranks
