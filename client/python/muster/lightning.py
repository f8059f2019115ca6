"""Lightning: a callback that saves with all ranks. Tested with lightning 2.6.

from muster.lightning import Muster

cb = Muster()
trainer = L.Trainer(strategy="ddp", callbacks=[cb])
trainer.fit(model, loader, ckpt_path=cb.ckpt_path)
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Sequence
from typing import Any

import lightning

from . import _framework

_framework.check_version("muster.lightning", "lightning", lightning.__version__)

import torch
from lightning.fabric.utilities.data import _set_sampler_epoch
from lightning.fabric.utilities.seed import pl_worker_init_function
from lightning.pytorch import Callback
from lightning.pytorch.utilities import CombinedLoader
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from ._errors import Error, missing, misused, wrong
from ._hooks import add_unfit
from ._log import log
from ._manager import Manager, _Policy
from ._member import RestoreContext, SaveContext
from ._signals import hear_instead_of, shield, shield_behind
from .torch import _load_file, _refuse_pickles, rng_state, set_rng_state

_TRAINER = "trainer.ckpt"  # what Lightning wrote, in the directory of rank 0
_RANK = "rank.pt"  # what is each rank's own


def _place(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Where a checkpoint of Lightning's holds the positions of its data loaders."""
    place: dict[str, Any] = checkpoint["loops"]["fit_loop"]["state_dict"]
    return place


def _place_loaders(trainer: Any, loaders: Any, restored: dict[str, Any]) -> None:
    """Puts each rank's loaders where they stood. Lightning itself would load rank 0's, and begin
    the order of a resumed epoch before it has told the sampler which epoch it is.
    """
    loaders._load_state_dicts(restored["loaders"])
    if restored["epoch_ended"]:
        for loader in loaders.flattened:
            if hasattr(loader, "state_dict"):
                assert not list(loader), "a loader had batches left at the end of an epoch"
        set_rng_state(restored["random"])  # the next epoch's loaders draw from it
    for loader in loaders.flattened:
        _set_sampler_epoch(loader, trainer.current_epoch)
    iter(trainer.fit_loop._data_fetcher)
    if restored["epoch_ended"]:
        restored["random"] = rng_state()


def _shield_workers(trainer: Any) -> None:
    """The workers of the loaders that were given to fit, before Lightning starts them. Where it is
    to seed workers, it does so only for those without a function of their own.
    """
    seeds = int(os.environ.get("PL_SEED_WORKERS", 0)) != 0
    sources = (trainer.fit_loop._data_source, trainer.fit_loop.epoch_loop.val_loop._data_source)
    given = [source.instance for source in sources]
    combined = [loaders.iterables for loaders in given if isinstance(loaders, CombinedLoader)]
    for loader in tree_leaves([given, combined]):
        if isinstance(loader, DataLoader) and loader.num_workers > 0:
            own = loader.worker_init_fn
            if own is None and seeds:
                own = functools.partial(pl_worker_init_function, rank=trainer.global_rank)
            if own is not shield:
                loader.worker_init_fn = functools.partial(shield_behind, own)


def _warn_of(loader: Any) -> None:
    if not hasattr(loader, "state_dict"):
        log.warning(
            "a %s keeps no position, so a resumed epoch begins with its first batch again; use "
            "torchdata's StatefulDataLoader",
            type(loader).__name__,
        )
    if type(getattr(loader, "sampler", None)).__name__ == "DistributedSamplerWrapper":
        log.warning(
            "Lightning wrapped the sampler of a %s, so a resumed epoch has another order; give it "
            "a DistributedSampler of this rank",
            type(loader).__name__,
        )
    if getattr(loader, "num_workers", 0) > 0 and loader.worker_init_fn is None:
        log.warning(
            "the workers of a %s die of a SIGTERM to the process group, and the save with them; "
            "give worker_init_fn=muster.shield",
            type(loader).__name__,
        )


class Muster(Callback):  # type: ignore[misc] # lightning is not read here
    """All ranks of a Trainer save at one agreed step when one of them has to go; then
    muster.Preempted is raised, a SystemExit with the restart code.

    Lightning writes the checkpoint into muster's own directory. muster adds what differs between
    the ranks: random numbers, and the position in the data of loaders with a state_dict. Each rank
    gets its own back. The next launch has the same number of ranks.

    save, keep: policies of muster.Manager; its steps count the calls of this callback at which
    the optimizer had stepped, and metadata has Lightning's global_step. Checkpoints of
    ModelCheckpoint are its own: muster neither commits nor resumes them.
    options: those of muster.Manager. The directory is by default MUSTER_CHECKPOINT_DIR, else
    "muster" in the working directory.
    """

    def __init__(
        self, *, save: Sequence[_Policy] = (), keep: Sequence[_Policy] = (), **options: Any
    ) -> None:
        self._options = {"save": save, "keep": keep, **_framework.own_parts(options)}
        if "directory" not in options and not os.environ.get("MUSTER_CHECKPOINT_DIR"):
            self._options["directory"] = os.path.abspath("muster")
        self._manager: Manager | None = None
        self._trainer: Any = None
        self._path: str | None = None
        self._restored: dict[str, Any] | None = None  # of this rank, until it is in use
        self._loaders: Any = None  # the positions at the newest save
        self._step = 0  # of the manager, the next one
        self._global_step = -1  # of Lightning, the last one
        self._before: Any = None  # the program's handler of SIGTERM
        self._loads = _framework.Loads()

    # --- what a program uses ----------------------------------------------------------------

    @property
    def ckpt_path(self) -> str | None:
        """For Trainer.fit: the newest committed checkpoint, the same on all ranks; None at first.
        Joins the job, and waits for the other ranks.
        """
        self._open()
        return self._path

    def close(self) -> None:
        """Leaves the job, as the end of fit does. Raises Preempted and other muster.Error."""
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.close()

    # --- Lightning's calls ------------------------------------------------------------------

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        environment = getattr(trainer.strategy, "cluster_environment", None)
        if getattr(environment, "auto_requeue", False):
            raise wrong(
                "Lightning's SLURM requeue saves from inside a signal handler, beside muster; give "
                "Trainer(plugins=[SLURMEnvironment(auto_requeue=False)])"
            )
        self._before = signal.getsignal(signal.SIGTERM)
        if stage == "fit" and self._path is not None and self._trainer is None:
            for part in ("model", "optimizer"):
                method = f"load_{part}_state_dict"
                self._loads.tell(trainer.strategy, method, f"the {part}", self._path)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        _shield_workers(trainer)

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        if self._restored is not None:  # they are rank 0's; see _place_loaders
            _place(checkpoint).pop("combined_loader", None)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._loaders = _place(checkpoint).get("combined_loader")

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._trainer = trainer
        self._loads.close()
        self._open()
        self._global_step = trainer.global_step
        wanted = 0 if self._restored is None else self._restored["global_step"]
        if wanted and wanted != trainer.global_step:
            raise misused(
                f"the job goes on after Lightning's step {wanted}, and the Trainer stands at "
                f"{trainer.global_step}; call trainer.fit(..., ckpt_path=cb.ckpt_path)"
            )
        # Lightning's handler waits for the other ranks inside of it, where they never come
        displaced = signal.getsignal(signal.SIGTERM)
        if displaced != self._before:
            hear_instead_of(displaced, self._before)
        loaders = trainer.fit_loop._combined_loader
        for loader in loaders.flattened:
            _warn_of(loader)
        if self._restored is not None:
            _place_loaders(trainer, loaders, self._restored)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._restored is not None:  # what the loaders drew until here is in it already
            set_rng_state(self._restored["random"])
        self._restored = None

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step == self._global_step:
            return  # gradients are accumulated, which no checkpoint holds
        assert self._manager is not None
        self._global_step = trainer.global_step
        step, self._step = self._step, self._step + 1
        metadata = {"global_step": trainer.global_step}
        with _framework.Leaving(lambda raised: None):  # on_exception leaves
            self._manager.save(step, metadata=metadata, epoch=trainer.current_epoch)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        manager, self._manager = self._manager, None
        self._loads.close()
        told = isinstance(exception, Error) or not isinstance(exception, Exception)
        if self._path is not None and self._trainer is None and not told:
            add_unfit(exception, "the model", self._path)
        if manager is not None:
            manager.__exit__(type(exception), exception, exception.__traceback__)

    # --- what a checkpoint holds ------------------------------------------------------------

    def _open(self) -> None:
        if self._manager is not None:
            return
        self._manager = Manager(save_fn=self._save, restore_fn=self._restore, **self._options)
        try:
            restored = self._manager.restore()
        except BaseException as raised:
            manager, self._manager = self._manager, None
            manager.__exit__(type(raised), raised, raised.__traceback__)
            raise
        self._step = 0 if restored is None else restored.step + 1

    def _save(self, context: SaveContext) -> None:
        random = rng_state()  # before Lightning draws
        self._trainer.save_checkpoint(context.directory / _TRAINER)
        own = {
            "random": random,
            "loaders": self._loaders,
            "epoch_ended": bool(self._trainer.is_last_batch),
            "global_step": self._trainer.global_step,
        }
        _refuse_pickles("the state of a data loader", self._loaders, more="")
        torch.save(own, context.directory / _RANK)

    def _restore(self, context: RestoreContext) -> None:
        assert context.directory is not None
        advice = "restore an older checkpoint, or start another job"
        self._restored = _load_file(context.directory / _RANK, advice)
        found = sorted(context.checkpoint_directory.glob(f"*/{_TRAINER}"))
        if len(found) != 1:
            raise missing(
                f"{context.checkpoint_directory} holds {len(found)} files {_TRAINER} instead of "
                "one; start another job, or restore an older checkpoint"
            )
        self._path = str(found[0])


__all__ = ["Muster"]
