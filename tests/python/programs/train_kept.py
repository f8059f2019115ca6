"""Two ranks that save every 5 steps, and keep the newest two and the best: torch|dcp|accelerate STEPS

The loss that it tells is smallest at step 5. Model and optimizer have 1.2 MB.
"""

import importlib
import sys

import torch
from torch import nn

import muster
import muster.torch

of, steps = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
muster.torch.init_process_group("gloo")
Checkpointer = importlib.import_module(f"muster.{of}").Checkpointer
options = {"save_every": 5, "keep": [muster.KeepLatest(2), muster.KeepBest("loss")]}
model = nn.parallel.DistributedDataParallel(nn.Linear(1000, 100))
optimizer = torch.optim.AdamW(model.parameters())
if of == "accelerate":
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model.module, optimizer)
    checkpointer = Checkpointer(accelerator, **options)
else:
    checkpointer = Checkpointer(model=model, optimizer=optimizer, **options)
with checkpointer as ck:
    ck.restore()
    for step in ck.steps(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 1000)).sum().backward()
        optimizer.step()
        ck.step(metrics={"loss": torch.tensor(abs(step - 5.0))})
    print("kept", [info.step for info in ck.node.all_steps()])
torch.distributed.destroy_process_group()
