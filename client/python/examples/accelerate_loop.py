"""A loop of Accelerate's: muster run -n 2 -- python accelerate_loop.py [STEPS]

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn

import muster.accelerate  # muster


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index))


def main(steps=400):
    config = DataLoaderConfiguration(use_stateful_dataloader=True, use_seedable_sampler=True)
    accelerator = Accelerator(dataloader_config=config)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1))
    data = torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    model, optimizer, data = accelerator.prepare(net, optimizer, data)
    with muster.accelerate.Checkpointer(accelerator) as ck:  # muster
        ck.restore()  # muster
        epoch, batches = ck.node.steps_done // len(data), None  # was: epoch, batches = 0, None
        for _ in ck.steps(steps):  # was: for _ in range(steps):
            batch = next(batches, None) if batches else None
            if batch is None:
                data.set_epoch(epoch)
                epoch, batches = epoch + 1, iter(data)
                batch = next(batches)
            loss = (model(batch).squeeze(-1) - batch.sum(-1)).square().mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            ck.step()  # muster
        accelerator.print(f"{steps} steps, loss {loss.item():.6f}")
    accelerator.end_training()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
