"""DistributedDataParallel on gloo; each rank has data and random numbers of its own.

train_ddp.py STEPS SECONDS OUTPUT

Only the first launch, or the first SLOW_LAUNCHES, take their time. WORKERS processes load the data, in epochs, in an order that the model's random numbers began.
"""

import hashlib
import os
import pathlib
import sys
import time

import ends
import torch
import torch.distributed as dist
from torch import nn

import muster.torch as mt

steps, seconds, output = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
slow_launches = int(os.environ.get("SLOW_LAUNCHES", "1"))
workers = int(os.environ.get("WORKERS", "0"))
torch.set_num_threads(1)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * 25

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index))


class Loaded:
    """Batches that worker processes load, in epochs, and where it is."""

    def __init__(self, seed):
        from torchdata.stateful_dataloader import StatefulDataLoader

        self.generator = torch.Generator().manual_seed(seed)  # nobody draws from it
        self.loader = StatefulDataLoader(
            Items(), batch_size=8, shuffle=True, num_workers=workers, worker_init_fn=mt.shield
        )
        self.batches = None
        self.given = 0

    def __next__(self):
        self.given += 1
        batch = next(self.batches, None) if self.batches is not None else None
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch

    def state_dict(self):
        return {"given": self.given, "loader": self.loader.state_dict()}

    def load_state_dict(self, state):
        self.given = state["given"]
        self.loader.load_state_dict(state["loader"])
        self.batches = iter(self.loader)


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
data = Loaded(rank) if workers else Data(rank)
parts = {"model": model, "optimizer": optimizer, "scheduler": schedule, "data": data}
with ends.told(), mt.Checkpointer(**parts) as ck:
    print(f"resumed {ck.restore()}")
    for step in ck.steps(steps):
        loss = (model(next(data)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        time.sleep(seconds if ck.node.generation <= slow_launches else 0)
        ck.step()
    digest = hashlib.sha256()
    for tensor in [*model.state_dict().values(), torch.get_rng_state(), data.generator.get_state()]:
        digest.update(tensor.numpy().tobytes())
    weights = hashlib.sha256(net[0].weight.detach().numpy().tobytes()).hexdigest()
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{rank}").write_text(f"{weights} {digest.hexdigest()} {data.given}")
dist.destroy_process_group()
