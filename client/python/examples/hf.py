"""A Hugging Face Trainer that may be preempted: muster run -n 2 -- python hf.py

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from muster.transformers import Muster  # muster


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, x, labels):
        return {"loss": (self.layers(x).squeeze(-1) - labels).square().mean()}


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        x = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return {"x": x, "labels": x.sum()}


def make(output, callbacks=(), **arguments):
    set_seed(7)
    args = TrainingArguments(
        output_dir=output,
        num_train_epochs=5,
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        **arguments,
    )
    data = {"train_dataset": Data(), "eval_dataset": Data()}
    return Trainer(Net(), args, callbacks=list(callbacks), **data)


if __name__ == "__main__":
    trainer = make("output", callbacks=[cb := Muster()])  # was: trainer = make("output")
    trainer.train(resume_from_checkpoint=cb.checkpoint)  # was: trainer.train()
