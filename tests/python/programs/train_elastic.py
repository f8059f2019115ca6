"""DistributedDataParallel as torchrun starts it, on however many ranks: STEPS SECONDS OUTPUT FAST.

All ranks together take the same batch of 12 at a step, so its number alone says what is learnt. The
gradient of `counted` is 1 at the step and else 0, to the bit on 1, 2 and 3 ranks. It takes its time
until a file FAST is there.
"""

import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import muster.dcp

steps, seconds = int(sys.argv[1]), float(sys.argv[2])
output, fast = map(pathlib.Path, sys.argv[3:5])
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        self.counted = nn.Parameter(torch.zeros(steps))

    def forward(self, batch, step):
        loss = (self.layers(batch).squeeze(-1) - batch.sum(-1)).square().mean()
        return loss + self.counted[step]


class Data:
    """The same for all ranks, of which each takes its part."""

    def __init__(self):
        self.given = 0

    def __next__(self):
        whole = torch.randn(12, 16, generator=torch.Generator().manual_seed(self.given))
        self.given += 1
        return whole[dist.get_rank() :: dist.get_world_size()]

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]

    def share_out(self, states):
        self.load_state_dict(states[0])


dist.init_process_group("gloo")
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
data = Data()
with muster.dcp.Checkpointer(
    model=model, optimizer=optimizer, data=data, resize=data.share_out
) as ck:
    ck.restore()
    for step in ck.steps(steps):
        loss = model(next(data), step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0 if fast.exists() else seconds)
        ck.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), output)
dist.destroy_process_group()
