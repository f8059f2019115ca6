"""Accelerate on gloo: a prepared model, a shuffled stateful loader, dropout of each rank's own.

train_accelerate.py STEPS SECONDS OUTPUT [unpositioned]
"""

import hashlib
import os
import pathlib
import sys
import time

import ends
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn

import muster.accelerate
import muster.torch

steps, seconds, output = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
torch.set_num_threads(1)
torch.manual_seed(1)
if "RANK" in os.environ:  # mpirun says it in its own words, which Accelerate reads
    muster.torch.init_process_group("gloo")
accelerator = Accelerator(
    cpu=True,
    dataloader_config=DataLoaderConfiguration(
        use_stateful_dataloader="unpositioned" not in sys.argv, use_seedable_sampler=True
    ),
)
rank = accelerator.process_index
net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 1))
data = torch.utils.data.TensorDataset(torch.randn(640, 16))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)
model, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)
torch.manual_seed(100 + rank)  # dropout differs between the ranks
seen = hashlib.sha256()


def batches(begin):
    epoch = begin // len(loader)
    while True:
        loader.set_epoch(epoch)
        yield from loader
        epoch += 1


with ends.told(), muster.accelerate.Checkpointer(accelerator) as ck:
    print(f"resumed {ck.restore()}")
    stream = batches(ck.node.steps_done)
    for step in ck.steps(steps):
        (batch,) = next(stream)
        loss = (model(batch) - 1).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        time.sleep(seconds if ck.node.generation == 1 else 0)
        ck.step()
    state = [*accelerator.unwrap_model(model).state_dict().values()]
    weights = hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in state)).hexdigest()
    random = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
    last = hashlib.sha256(batch.numpy().tobytes()).hexdigest()
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{rank}").write_text(f"{weights} {random} {last}")
accelerator.end_training()
