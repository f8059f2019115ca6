"""FSDP2 with distributed checkpoints: muster run -n 2 -- python fsdp_dcp.py

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torchdata.stateful_dataloader import StatefulDataLoader

import muster.dcp  # muster


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index))


def main(steps):
    dist.init_process_group("gloo")  # on GPUs "cpu:gloo,cuda:nccl"
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1))
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + dist.get_rank())
    data = StatefulDataLoader(Data(), batch_size=8, shuffle=True)
    with muster.dcp.Checkpointer(model=model, optimizer=optimizer, data=data) as ck:  # muster
        ck.restore()  # muster
        batches = iter(data)
        for _ in ck.steps(steps):  # was: for _ in range(steps):
            batch = next(batches, None)
            if batch is None:
                batches = iter(data)
                batch = next(batches)
            loss = (model(batch).squeeze(-1) - batch.sum(-1)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            ck.step()  # muster
        if dist.get_rank() == 0:
            print(f"{steps} steps, loss {loss.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
