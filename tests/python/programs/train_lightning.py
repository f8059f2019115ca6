"""The example of Lightning, slowly until its first preemption.

train_lightning.py OUTPUT SECONDS one | two | validated [STEP]

two: two optimizers, so that global_step grows by two. validated: behind each epoch, by a loader
whose workers stay. STEP is saved too.
"""

import hashlib
import os
import pathlib
import sys
import time

import ends
import lightning as L
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "client/python/examples"))
import lightning_ddp

import muster
from muster.lightning import Muster

output, seconds, kind = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)


class Two(lightning_ddp.Net):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in self.optimizers():
            optimizer.step()

    def configure_optimizers(self):
        first, second = self.layers[0], self.layers[3]
        return [torch.optim.SGD(part.parameters(), 1e-3) for part in (first, second)]


class Validated(lightning_ddp.Net):
    def validation_step(self, batch, batch_idx):
        self.training_step(batch, batch_idx)

    def on_validation_end(self):
        print(f"validated by {len(self.trainer.val_dataloaders._iterator._workers)}", flush=True)


def validation_loader():
    data, rank = lightning_ddp.Data(), int(os.environ["RANK"])
    return torch.utils.data.DataLoader(
        torch.utils.data.Subset(data, range(rank, 64, 2)),
        batch_size=8,
        sampler=range(32),
        num_workers=2,
        persistent_workers=True,
        generator=torch.Generator(),  # of its own: it draws nothing from the training's
    )


class Slow(L.Callback):
    def on_train_start(self, trainer, module):
        torch.manual_seed(100 + trainer.global_rank)  # dropout differs between the ranks

    def on_train_batch_end(self, *arguments):
        time.sleep(seconds if os.environ["MUSTER_RESTART_COUNT"] == "0" else 0)


L.seed_everything(7)
model = {"one": lightning_ddp.Net, "two": Two, "validated": Validated}[kind]()
saves = [muster.SaveSteps([int(step)]) for step in sys.argv[4:]]
cb = Muster(save=saves, keep=[muster.KeepLatest(2)])
trainer, loader = lightning_ddp.make([cb, Slow()])
path = cb.ckpt_path
print(f"resumed {path}", flush=True)
with ends.told():
    trainer.fit(model, loader, validation_loader() if kind == "validated" else None, ckpt_path=path)
weights, own = hashlib.sha256(), hashlib.sha256(torch.get_rng_state().numpy().tobytes())
for tensor in model.state_dict().values():
    weights.update(tensor.numpy().tobytes())
(output / "digests").mkdir(parents=True, exist_ok=True)
(output / "digests" / os.environ["RANK"]).write_text(
    f"{weights.hexdigest()} {own.hexdigest()} {trainer.global_step}"
)
torch.distributed.destroy_process_group()
