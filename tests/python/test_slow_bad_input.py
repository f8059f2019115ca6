"""A checkpoint that does not fit the program: each framework's module says so, and what to do."""
# needs: torch
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: jax
# needs: orbax
# needs: keras

import copy
import re
import socket

import pytest
import torch

import muster
import muster.dcp
import muster.torch

PATIENCE = 240.0  # two processes that each import a framework, on two loaded cores


def train(world, of, *how):
    process = world.python("train_width.py", of, *how, cwd=world.directory)
    text, _ = process.communicate(timeout=PATIENCE)
    return text


RESTORES = ["dcp", "accelerate", "lightning", "orbax", "transformers"]


@pytest.mark.parametrize("of", RESTORES)
def test_a_model_of_another_width_is_named_with_what_to_do(world, of):
    text = train(world, of, 2)
    assert "it trained" in text, text
    text = train(world, of, 3)
    told = text.partition("said: ")[2]
    assert re.search(r"(?i)size mismatch|shape", told), text
    assert "of muster: RestoreError" in text
    assert "does not fit the checkpoint: " in told, text
    assert "Make it as it was at the save, or start another job" in told, text
    assert "Traceback" not in told, text


@pytest.mark.parametrize("of", ["accelerate", "lightning", "transformers"])
def test_an_optimizer_of_other_parameters_is_named_with_what_to_do(world, of):
    assert "it trained" in (text := train(world, of, 2)), text
    text = train(world, of, 2, "bare")
    assert "of muster: RestoreError" in text, text
    says = r"(?s)said: .* does not fit the checkpoint: .*parameter group.* start another job"
    assert re.search(says, text), text


def test_a_model_is_as_it_was_once_its_checkpoint_is_loaded():
    model, loads = torch.nn.Linear(4, 1), muster._framework.Loads()
    loads.tell(model, "load_state_dict", "the model", "/a/place")
    with pytest.raises(muster.RestoreError, match="the model does not fit .*: /a/place: ") as caught:
        model.load_state_dict({})
    assert type(caught.value.__cause__) is RuntimeError
    copied = copy.deepcopy(model)
    copied.load_state_dict({name: part + 1 for name, part in model.state_dict().items()})
    assert torch.equal(copied.weight, model.weight + 1)  # and not the model's own
    loads.close()
    assert "load_state_dict" not in vars(model)
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({})


def test_each_optimizer_is_as_it_was_once_a_checkpoint_is_loaded():
    kind, loads = torch.optim.Optimizer, muster._framework.Loads()
    own = vars(kind)["load_state_dict"]
    loads.tell_all(kind, "load_state_dict", "the optimizer", "/a/place")
    optimizer = torch.optim.SGD(torch.nn.Linear(4, 1).parameters())
    optimizer.load_state_dict(optimizer.state_dict())
    with pytest.raises(muster.RestoreError, match="the optimizer does not fit .*: /a/place: "):
        optimizer.load_state_dict({"param_groups": []})
    loads.close()
    assert vars(kind)["load_state_dict"] is own


@pytest.mark.parametrize("of", [muster.torch, muster.dcp])
def test_a_checkpoint_of_a_device_that_is_not_here_is_restored_on_this_one(alone, monkeypatch, of):
    def train(fill):
        model = torch.nn.Linear(4, 1)
        torch.nn.init.constant_(model.weight, fill)
        with of.Checkpointer(model=model, save_every=1) as ck:
            ck.restore()
            for _ in ck.steps(ck.node.steps_done + 3):
                ck.step()
        return model.weight

    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
        train(7.0)
    assert not torch.cuda.is_available()
    (newest,) = alone.client.latest("job")
    files = [path for path in alone.directory.glob("checkpoints/*/*/*") if path.is_file()]
    assert any(b"cuda:0" in path.read_bytes() for path in files), newest
    assert train(0.0).unique().tolist() == [7.0]


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(4)


def distributed():
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh

    mesh = init_device_mesh("cpu", (1,))
    return DTensor.from_local(torch.zeros(4), mesh, [Replicate()])


def emptied():
    tensor = torch.zeros(4)
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.fixture
def group(monkeypatch, tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: torch.zeros(4, device="meta"), "'w' is on meta, where muster reads no memory"),
        (lambda: torch.zeros(2, 2).to_sparse_csr(), "'w' is a Tensor without plain memory"),
        (lambda: torch.nested.nested_tensor([torch.zeros(4)]), "'w' is a Tensor without plain mem"),
        (lambda: torch.nn.LazyLinear(4).weight, "'w' is a UninitializedParameter without plain"),
        (fake, "'w' is a FakeTensor without plain memory"),
        (emptied, "'w' is a Tensor without plain memory .its address is 0"),
        (distributed, "'w' is a DTensor, of which each rank has a part; save it by muster.dcp"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_memory_of_its_own_is_refused_by_name(group, make, says):
    with pytest.raises(muster.ArgumentError, match=says):
        muster.TrainingState(w=make())


def silent():
    """A port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("of", [*RESTORES, "torch", "jax", "keras"])
def test_a_broker_that_does_not_answer_is_named_with_what_to_do(world, of):
    address = silent()
    env = {"MUSTER_BROKER": address}
    process = world.python("train_width.py", of, 2, 0.5, cwd=world.directory, env=env)
    text, _ = process.communicate(timeout=PATIENCE)
    told = text.partition("said: ")[2]
    assert "of muster: BrokerError" in text, text
    assert f"no broker answered at {address} within 500 ms; start one with `musterd`" in told, text
    assert "never closed" not in told, text
