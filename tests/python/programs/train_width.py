"""Trains a model for three steps, each of which is saved: train_width.py OF WIDTH [bare|SECONDS]

bare: the optimizer has the weights alone. SECONDS: so long it looks for a broker. It tells what
muster raises.
"""

import os
import sys
import traceback

import muster

of, width = sys.argv[1], int(sys.argv[2])
EVERY = muster.SaveEverySteps(1)
BARE = "bare" in sys.argv
OPTIONS = {"connect_timeout": float(sys.argv[3])} if sys.argv[3:] and not BARE else {}


def torch_net():
    import torch

    model = torch.nn.Linear(4, width)
    trained = [model.weight] if BARE else model.parameters()
    return torch, model, torch.optim.AdamW(trained)


def loop(ck, backward, torch, model, optimizer):
    with ck:
        ck.restore()
        for _ in ck.steps(3):
            backward(model(torch.ones(2, 4)).mean())
            optimizer.step()
            ck.step()


def torch():
    import muster.torch

    torch, model, optimizer = torch_net()
    ck = muster.torch.Checkpointer(model=model, optimizer=optimizer, save_every=1, **OPTIONS)
    loop(ck, torch.Tensor.backward, torch, model, optimizer)


def dcp():
    import muster.dcp

    torch, model, optimizer = torch_net()
    ck = muster.dcp.Checkpointer(model=model, optimizer=optimizer, save_every=1, **OPTIONS)
    loop(ck, torch.Tensor.backward, torch, model, optimizer)


def accelerate():
    from accelerate import Accelerator

    import muster.accelerate

    torch, *parts = torch_net()
    accelerator = Accelerator(cpu=True)
    parts = accelerator.prepare(*parts)
    ck = muster.accelerate.Checkpointer(accelerator, save_every=1, **OPTIONS)
    loop(ck, accelerator.backward, torch, *parts)


def transformers():
    from transformers import Trainer, TrainingArguments

    from muster.transformers import Muster

    torch, layer, optimizer = torch_net()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return {"loss": self.layer(x).mean()}

    args = TrainingArguments(
        "trainer", max_steps=3, save_steps=1, use_cpu=True, report_to="none", disable_tqdm=True
    )
    data = [{"x": torch.ones(4)}] * 64
    trainer = Trainer(
        Net(),
        args,
        train_dataset=data,
        optimizers=(optimizer, None),
        callbacks=[cb := Muster(**OPTIONS)],
    )
    trainer.train(resume_from_checkpoint=cb.checkpoint)


def lightning():
    import lightning as L

    from muster.lightning import Muster

    torch, layer, optimizer = torch_net()

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def training_step(self, batch, batch_idx):
            return self.layer(batch).mean()

        def configure_optimizers(self):
            return optimizer

    loader = torch.utils.data.DataLoader(torch.ones(64, 4), batch_size=8)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    cb = Muster(save=[EVERY], **OPTIONS)
    trainer = L.Trainer(accelerator="cpu", devices=1, max_steps=3, callbacks=[cb], **quiet)
    trainer.fit(Net(), loader, ckpt_path=cb.ckpt_path)


def orbax():
    import jax.numpy
    import orbax.checkpoint as ocp

    import muster.orbax

    state = {"w": jax.numpy.zeros(width)}
    with muster.orbax.CheckpointManager(os.path.abspath("orbax"), muster=OPTIONS) as mngr:
        latest = mngr.latest_step()
        if latest is not None:
            state = mngr.restore(latest, args=ocp.args.StandardRestore(state))
        for step in range(0 if latest is None else latest + 1, 3):
            mngr.save(step, args=ocp.args.StandardSave(state))


def jax():
    import muster.jax

    with muster.jax.PreemptionSync("jax", **OPTIONS):
        pass


def keras():
    import keras
    import numpy

    from muster.keras import BackupAndRestore

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(width)])
    model.compile("sgd", "mse")
    data = numpy.ones((8, 4)), numpy.ones((8, width))
    model.fit(*data, verbose=0, callbacks=[BackupAndRestore("keras", **OPTIONS)])


try:
    globals()[of]()
    print("it trained")
except Exception as error:
    traceback.print_exc()
    print("of muster:", type(error).__name__ if isinstance(error, muster.Error) else None)
    print("said:", error, *getattr(error, "__notes__", ()))
