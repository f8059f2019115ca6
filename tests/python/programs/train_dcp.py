"""FSDP2 with torch.distributed.checkpoint: STEPS SECONDS OUTPUT-DIRECTORY SAVE-EVERY [whole].

Writes the digest of the whole weights and optimizer, and of what is each rank's own, at the restore
and at the end. Prints the digest of each save. whole: each rank trains on the same data, so that
another number of ranks goes on with it.
"""

import hashlib
import pathlib
import sys
import time

import ends
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import muster.dcp
import muster.torch

steps, seconds, output, every = (kind(text) for kind, text in zip(
    (int, float, pathlib.Path, int), sys.argv[1:], strict=False
))
whole = "whole" in sys.argv


class Data:
    """An endless stream: its own generator, and how much it gave."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.given = 0

    def __next__(self):
        self.given += 1
        return torch.randn(8, 16, generator=self.generator)

    def state_dict(self):
        return {"given": self.given, "generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.given = state["given"]
        self.generator.set_state(state["generator"])


def full(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def digest(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(full(tensor.detach()).contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def weights():
    """The same on any number of ranks. A collective."""
    state = [optimizer.state[one] for one in model.parameters() if one in optimizer.state]
    moments = [one[name] for one in state for name in ("step", "exp_avg", "exp_avg_sq")]
    return digest([*model.parameters(), *moments])


def share_out(states):
    """All ranks stand at the same place of the same data: so does another number of them."""
    assert len({state["given"] for state in states}) == 1
    data.load_state_dict(states[0])


muster.torch.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(16, 33), nn.ReLU(), nn.Dropout(0.25), nn.Linear(33, 1))
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)
torch.manual_seed(100 if whole else 100 + rank)
data = Data(7 if whole else rank)
with ends.told(), muster.dcp.Checkpointer(
    model=model,
    optimizer=optimizer,
    scheduler=schedule,
    data=data,
    resize=share_out if whole else None,
    save_every=every,
) as ck:
    print(f"resumed {ck.restore()} at {ck.node.steps_done} with {weights()}", flush=True)
    for step in ck.steps(steps):
        loss = (model(next(data)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        time.sleep(seconds)
        if every and step and step % every == 0:
            print(f"saves {step + 1} with {weights()}", flush=True)
        ck.step()
    own = digest([torch.get_rng_state(), data.generator.get_state()])
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{rank}").write_text(
        f"{weights()} {own} {data.given} {schedule.get_last_lr()[0]:.9g}"
    )
dist.destroy_process_group()
