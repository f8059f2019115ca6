"""Hugging Face Accelerate: a Checkpointer of what the Accelerator prepared. Tested with 1.15.

import muster.accelerate

accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
with muster.accelerate.Checkpointer(
    accelerator, save_every=500, keep=[muster.KeepLatest(3)]
) as ck:
    ck.restore()                     # before: accelerator.load_state(a folder that you chose)
    for step in ck.steps(10_000):
        ...                          # forward, accelerator.backward(loss), optimizer.step()
        ck.step()                    # before: check_trigger, save_state
"""

from __future__ import annotations

import pathlib
import tempfile
import warnings
from typing import Any

import accelerate

from . import _framework

_framework.check_version("muster.accelerate", "accelerate", accelerate.__version__)

import torch

from . import torch as _torch
from ._errors import missing, unfit, wrong, wrong_type
from ._member import RestoreContext, SaveContext

_SHARED = ("FSDP", "DEEPSPEED", "MEGATRON_LM")  # all ranks write one folder together


def _check(accelerator: Any) -> None:
    """Refuses what cannot be saved and restored rank by rank."""
    if not isinstance(accelerator, accelerate.Accelerator):
        raise wrong_type(
            f"accelerator is a {type(accelerator).__name__}; give the accelerate.Accelerator that "
            "prepared the training"
        )
    kind = accelerator.distributed_type.value
    if kind in _SHARED:
        raise wrong(
            f"the accelerator distributes by {kind}, whose ranks write one folder together; save "
            "such a model by muster.dcp"
        )
    if accelerator.project_configuration.automatic_checkpoint_naming:
        raise wrong(
            "automatic_checkpoint_naming writes beside the directory that all ranks commit; leave "
            "it out of the ProjectConfiguration"
        )


def _merged(first: pathlib.Path, own: pathlib.Path, into: pathlib.Path) -> None:
    """The main process' files, but this rank's own private files instead of the main process'."""
    for folder in (first, own):
        for file in folder.iterdir():
            (into / file.name).unlink(missing_ok=True)
            (into / file.name).symlink_to(file.resolve())


class Checkpointer(_torch.Checkpointer):
    """Saves and restores by the Accelerator's own save_state and load_state, at the step that all
    ranks agreed on.

    Each rank writes into a directory of its own. So each gets its own random numbers and data
    positions back, which save_state alone writes over one another. What was given to prepare, and
    to register_for_checkpointing, is saved. Construct it after both, on all ranks.
    For the position in the data give DataLoaderConfiguration(use_stateful_dataloader=True); a
    loader without it begins its data again, and muster warns.
    The next launch has the same number of ranks. A checkpoint of Accelerate's holds pickles: trust
    it as you trust a program.
    options: those of muster.torch.Checkpointer, such as save_every, keep, directory, sources.
    """

    def __init__(self, accelerator: Any, **options: Any) -> None:
        _check(accelerator)
        self._accelerator = accelerator
        for loader in accelerator._dataloaders:
            base = getattr(loader, "base_dataloader", loader)
            if base.generator is None:  # else each iter() draws from the model's random numbers
                seed = torch.initial_seed() + accelerator.process_index
                base.generator = torch.Generator().manual_seed(seed)
        loaders = accelerator._dataloaders
        if not all(getattr(loader, "use_stateful_dataloader", False) for loader in loaders):
            warnings.warn(
                "a loader of this accelerator has no position, so a resumed run begins its data "
                "again; give Accelerator(dataloader_config="
                "DataLoaderConfiguration(use_stateful_dataloader=True))",
                RuntimeWarning,
                stacklevel=2,
            )
        super().__init__(**options)

    def _save(self, context: SaveContext) -> None:
        self._accelerator.save_state(str(context.directory))

    def _restore(self, context: RestoreContext) -> None:
        assert context.directory is not None
        found = list(context.checkpoint_directory.glob("shard-00000-*"))
        if len(found) != 1 or not list(context.directory.glob("random_states_*")):
            raise missing(
                f"{context.checkpoint_directory} has no state of Accelerate's; was it saved by "
                "muster.accelerate? Start another job, or restore an older checkpoint"
            )
        with tempfile.TemporaryDirectory(prefix="muster-") as folder:
            _merged(found[0], context.directory, pathlib.Path(folder))
            try:
                self._accelerator.load_state(folder)
            except Exception as error:
                raise unfit("what the accelerator prepared", error) from error


__all__ = ["Checkpointer"]
