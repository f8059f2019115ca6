"""DistributedDataParallel on gloo; each rank has data and random numbers of its own.

train_ddp.py STEPS SECONDS OUTPUT
"""

import hashlib
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import muster.torch as mt

steps, seconds, output = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
torch.set_num_threads(1)


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


mt.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 1))
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)
torch.manual_seed(100 + rank)  # dropout differs between the ranks
data = Data(rank)
with mt.Checkpointer(model=model, optimizer=optimizer, scheduler=schedule, data=data) as ck:
    print(f"resumed {ck.restore()}")
    for step in ck.steps(steps):
        loss = (model(next(data)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        time.sleep(seconds if ck.node.generation == 1 else 0)
        ck.step()
    digest = hashlib.sha256()
    for tensor in [*model.state_dict().values(), torch.get_rng_state(), data.generator.get_state()]:
        digest.update(tensor.numpy().tobytes())
    weights = hashlib.sha256(net[0].weight.detach().numpy().tobytes()).hexdigest()
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{rank}").write_text(f"{weights} {digest.hexdigest()} {data.given}")
dist.destroy_process_group()
