"""A checkpoint that does not fit the program: each framework's module says so, and what to do."""
# needs: torch
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: jax
# needs: orbax

import re

import pytest
import torch

import muster.dcp
import muster.torch

PATIENCE = 240.0  # two processes that each import a framework, on two loaded cores


def train(world, of, width):
    process = world.python("train_width.py", of, width, cwd=world.directory)
    text, _ = process.communicate(timeout=PATIENCE)
    return text


# By the module: does it take the state itself? Else the framework's own error has muster's words.
OWN = {"dcp": True, "accelerate": True, "lightning": False, "orbax": True, "transformers": False}


@pytest.mark.parametrize("of", OWN)
def test_a_model_of_another_width_is_named_with_what_to_do(world, of):
    text = train(world, of, 2)
    assert "it trained" in text, text
    text = train(world, of, 3)
    told = text.partition("said: ")[2]
    assert re.search(r"(?i)size mismatch|shape", told), text
    assert f"of muster: {OWN[of]}" in text
    assert "does not take what was saved of it: " in told, text
    assert "Make it as it was then, or start another job" in told, text
    assert "Traceback" not in told, text


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
