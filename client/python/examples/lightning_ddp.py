"""Lightning on two ranks that may be preempted: muster run -n 2 -- python lightning_ddp.py

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import os

import lightning as L
import torch
from torch import nn
from torch.utils.data.distributed import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader

from muster import KeepLatest  # muster
from muster.lightning import Muster  # muster


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1)
        )

    def training_step(self, batch, batch_idx):
        return (self.layers(batch).squeeze(-1) - batch.sum(-1)).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index))


def make(callbacks=()):
    data, rank = Data(), int(os.environ["RANK"])
    sampler = DistributedSampler(data, num_replicas=2, rank=rank)  # its order is kept
    loader = StatefulDataLoader(data, batch_size=8, sampler=sampler, num_workers=2)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=5,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=list(callbacks),
    )
    return trainer, loader


if __name__ == "__main__":
    L.seed_everything(7)
    trainer, loader = make([cb := Muster(keep=[KeepLatest(2)])])  # was: trainer, loader = make()
    trainer.fit(Net(), loader, ckpt_path=cb.ckpt_path)  # was: trainer.fit(Net(), loader)
