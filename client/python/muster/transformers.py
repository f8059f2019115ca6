"""Hugging Face Trainer: a callback that saves with all ranks. Tested with transformers 5.23.

from muster.transformers import Muster

cb = Muster()
trainer = Trainer(model, args, train_dataset=data, callbacks=[cb])
trainer.train(resume_from_checkpoint=cb.checkpoint)
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import transformers

from . import _framework

_framework.check_version("muster.transformers", "transformers", transformers.__version__)

from transformers import TrainerCallback
from transformers.trainer_utils import rotate_checkpoints

from ._elsewhere import Elsewhere, Saved
from ._errors import misused, wrong
from ._log import log
from ._manager import _Policy
from ._signals import shield_behind

_SEAL = "muster.json"  # in the Trainer's checkpoint: the launch that wrote it


def _check_seal(saved: Saved) -> None:
    seal = pathlib.Path(saved.path, _SEAL)
    if not seal.exists() or json.loads(seal.read_text()) != {"generation": saved.generation}:
        raise wrong(
            f"{saved.path} was written again by a save that was not committed; restore an older "
            "checkpoint, or start another job"
        )


def _check_arguments(args: Any) -> None:
    """Refuses options that cannot go together with saves that all ranks agree on."""
    if args.enable_jit_checkpoint:
        raise wrong(
            "enable_jit_checkpoint lets one rank save alone, which deadlocks with the others; "
            "leave it out, muster saves all ranks"
        )
    if args.save_strategy == "best":
        raise wrong(
            'save_strategy="best" takes back a save that all ranks agreed on; give '
            'save_strategy="steps" with load_best_model_at_end=True'
        )
    if args.save_only_model:
        raise wrong(
            "save_only_model leaves out optimizer and random numbers, so nothing can be resumed; "
            "leave it out"
        )


def _ends_epoch(state: Any, control: Any) -> bool:
    """Does the Trainer call on_epoch_end after this step?"""
    return (
        float(state.epoch).is_integer() or control.should_epoch_stop or control.should_training_stop
    )


class Muster(TrainerCallback):  # type: ignore[misc] # transformers has no types
    """All ranks of a Trainer save at one agreed step when one of them has to go; then
    muster.Preempted is raised, a SystemExit with the restart code.

    The Trainer writes its own checkpoint-N. muster says when, commits it once all ranks have
    written, and `checkpoint` is only ever a committed one. Saves of the Trainer's own, by
    save_strategy, are committed the same way. save_total_limit counts from the commit on.

    save, keep: further policies of muster.Manager. Steps are the Trainer's global_step.
    options: those of muster.Manager. The directory of muster's own small files is by default
    MUSTER_CHECKPOINT_DIR, else "muster" in the Trainer's output_dir.
    """

    def __init__(
        self, *, save: Sequence[_Policy] = (), keep: Sequence[_Policy] = (), **options: Any
    ) -> None:
        self._options = {"save": save, "keep": keep, **options}
        self._args: Any = None
        self._model: Any = None
        self._loads = _framework.Loads()
        self._limit: int | None = None
        self._elsewhere: Elsewhere | None = None
        self._restored: Saved | None = None

    # --- what a program uses ----------------------------------------------------------------

    @property
    def checkpoint(self) -> str | None:
        """For resume_from_checkpoint: the newest committed one, the same on all ranks; None at
        first. Joins the job, and waits for the other ranks. Ask it after Trainer(...).
        """
        self._open()
        if self._restored is None:
            return None
        if hasattr(self._model, "load_state_dict"):  # called before on_train_begin
            from torch.optim import Optimizer  # the Trainer trains with PyTorch alone

            model, self._model = self._model, None
            self._loads.tell(model, "load_state_dict", "the model", self._restored.path)
            self._loads.tell_all(
                Optimizer, "load_state_dict", "the optimizer", self._restored.path
            )
        return self._restored.path

    def close(self) -> None:
        """Leaves the job, as the end of training does. Raises Preempted and other muster.Error."""
        self._loads.close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    # --- the Trainer's calls ----------------------------------------------------------------

    def on_init_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        _check_arguments(args)
        self._args, self._model = args, others.get("model")
        self._limit, args.save_total_limit = args.save_total_limit, None  # see _rotate

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._loads.close()
        self._model = None
        if state.is_hyper_param_search:
            raise wrong("muster saves no hyperparameter search; leave its callback out there")
        self._open()
        if self._restored is not None and self._restored.step != state.global_step:
            raise misused(
                f"the job goes on after step {self._restored.step}, and the Trainer stands at "
                f"{state.global_step}; call trainer.train(resume_from_checkpoint=cb.checkpoint)"
            )
        loader: Any = others.get("train_dataloader")
        loader = getattr(loader, "base_dataloader", loader)  # accelerate's wraps the Trainer's
        if getattr(loader, "num_workers", 0) > 0:
            loader.worker_init_fn = functools.partial(shield_behind, loader.worker_init_fn)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if args.save_strategy == "epoch" and _ends_epoch(state, control):
            return  # the Trainer decides in on_epoch_end, and so this boundary is there
        self._turn(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if state.global_step != self._open().asked:
            self._turn(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        elsewhere, step, path = self._open(), state.global_step, self._path(args, state)
        if not elsewhere.ask(step, wanted=True):  # another callback wanted it after our turn
            return
        if args.should_save:
            seal = {"generation": elsewhere.manager.generation}
            (path / _SEAL).write_text(json.dumps(seal))
        metrics = {
            name: value
            for row in state.log_history
            if row.get("step") == step
            for name, value in row.items()
            if name.startswith("eval_") and isinstance(value, (int, float))
        }
        epoch = int(state.epoch)
        if elsewhere.commit(step, str(path), writer=True, metrics=metrics, epoch=epoch):
            self._rotate(args, state)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.close()

    # --- steps ------------------------------------------------------------------------------

    def _open(self) -> Elsewhere:
        if self._elsewhere is not None:
            return self._elsewhere
        if self._args is None:
            raise misused("this callback is in no Trainer yet; make Trainer(callbacks=[cb])")
        if "directory" not in self._options and not os.environ.get("MUSTER_CHECKPOINT_DIR"):
            self._options["directory"] = os.path.join(self._args.output_dir, "muster")
        options = {"restore_any_world_size": False, **self._options}
        self._elsewhere = Elsewhere(check=_check_seal, **options)
        self._restored = self._elsewhere.latest
        return self._elsewhere

    def _turn(self, args: Any, state: Any, control: Any) -> None:
        """The boundary after a step; where it is to be saved, the Trainer does so next."""
        elsewhere, step = self._open(), state.global_step
        if not elsewhere.ask(step, wanted=control.should_save):
            return
        control.should_save = True
        if control.should_evaluate and elsewhere.leaves(step):
            control.should_evaluate = False
            log.warning(
                "the evaluation of step %d is left out: the job is being terminated", step
            )
        path = self._path(args, state)
        if args.should_save:
            (path / _SEAL).unlink(missing_ok=True)  # what is there is written again
        elsewhere.writes(str(path), later=True)

    def _rotate(self, args: Any, state: Any) -> None:
        """The Trainer's own would delete the committed checkpoint for one that is not yet."""
        if args.should_save and self._limit is not None:
            rotate_checkpoints(
                args.output_dir, self._limit, state.best_model_checkpoint, use_mtime=True
            )

    @staticmethod
    def _path(args: Any, state: Any) -> pathlib.Path:
        return pathlib.Path(os.path.abspath(args.output_dir), f"checkpoint-{state.global_step}")


__all__ = ["Muster"]
