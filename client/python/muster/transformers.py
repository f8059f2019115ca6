"""Hugging Face Trainer: a callback that saves with all ranks. Tested with transformers 5.23.

from muster.transformers import Muster

cb = Muster()
trainer = Trainer(model, args, train_dataset=data, callbacks=[cb])
trainer.train(resume_from_checkpoint=cb.checkpoint)
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import transformers
from transformers import TrainerCallback
from transformers.trainer_utils import rotate_checkpoints

from . import _framework, _progress
from ._manager import Manager, _Policy
from ._member import RestoreContext, SaveContext
from ._signals import shield

_framework.check_version("muster.transformers", "transformers", transformers.__version__, "5.23")

_POINTER = "trainer.json"  # muster's checkpoint: where the Trainer wrote its own
_SEAL = "muster.json"  # in the Trainer's checkpoint: which save of muster's it belongs to


@dataclasses.dataclass(frozen=True)
class _Seal:
    generation: int
    round: int


def _read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: pathlib.Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _check_arguments(args: Any) -> None:
    """What cannot go together with saves that all ranks agree on."""
    if args.enable_jit_checkpoint:
        raise ValueError(
            "enable_jit_checkpoint lets one rank save alone, which deadlocks with the others; "
            "leave it out, muster saves all ranks"
        )
    if args.save_strategy == "best":
        raise ValueError(
            'save_strategy="best" takes back a save that all ranks agreed on; give '
            'save_strategy="steps" with load_best_model_at_end=True'
        )
    if args.save_only_model:
        raise ValueError(
            "save_only_model leaves out optimizer and random numbers, so nothing can be resumed; "
            "leave it out"
        )


def _ends_epoch(state: Any, control: Any) -> bool:
    """Does the Trainer call on_epoch_end behind this step?"""
    return (
        float(state.epoch).is_integer() or control.should_epoch_stop or control.should_training_stop
    )


def _shielded(init: Callable[[int], object] | None, worker_id: int) -> None:
    if init is not None:
        init(worker_id)
    shield(worker_id)


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
        self._options = {"save": save, "keep": keep, **_framework.own_parts(options)}
        self._args: Any = None
        self._limit: int | None = None
        self._manager: Manager | None = None
        self._restored: str | None = None  # the Trainer's checkpoint
        self._restored_step: int | None = None
        self._asked = -1  # the step whose boundary was passed
        self._written: pathlib.Path | None = None  # the Trainer's newest checkpoint, at that step

    # --- what a program uses ----------------------------------------------------------------

    @property
    def checkpoint(self) -> str | None:
        """For resume_from_checkpoint: the newest committed one, the same on all ranks; None at
        first. Joins the job, and waits for the other ranks. Ask it behind Trainer(...).
        """
        self._open()
        return self._restored

    def close(self) -> None:
        """Leaves the job; the end of the training does so by itself."""
        manager = self._stop()
        if manager is not None:
            manager.close()

    # --- the Trainer's calls ----------------------------------------------------------------

    def on_init_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        _check_arguments(args)
        self._args = args
        self._limit, args.save_total_limit = args.save_total_limit, None  # see _rotate

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if state.is_hyper_param_search:
            raise ValueError("muster saves no hyperparameter search; leave its callback out there")
        self._open()
        if self._restored_step is not None and self._restored_step != state.global_step:
            raise RuntimeError(
                f"the job goes on behind step {self._restored_step}, and the Trainer stands at "
                f"{state.global_step}; call trainer.train(resume_from_checkpoint=cb.checkpoint)"
            )
        loader: Any = others.get("train_dataloader")
        loader = getattr(loader, "base_dataloader", loader)  # accelerate's wraps the Trainer's
        if getattr(loader, "num_workers", 0) > 0:
            loader.worker_init_fn = functools.partial(_shielded, loader.worker_init_fn)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if args.save_strategy == "epoch" and _ends_epoch(state, control):
            return  # the Trainer decides in on_epoch_end, and so this boundary is there
        self._turn(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if state.global_step > self._asked:
            self._turn(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._written = self._path(args, state)
        self._commit(args, state)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.close()

    # --- steps ------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._manager is not None:
            return
        if self._args is None:
            raise RuntimeError("this callback is in no Trainer yet; make Trainer(callbacks=[cb])")
        if "directory" not in self._options and not os.environ.get("MUSTER_CHECKPOINT_DIR"):
            self._options["directory"] = os.path.join(self._args.output_dir, "muster")
        self._manager = Manager(save_fn=self._save, restore_fn=self._restore, **self._options)
        restored = self._manager.restore()
        self._restored_step = restored.step if restored else None
        self._asked = -1 if restored is None else restored.step

    def _turn(self, args: Any, state: Any, control: Any) -> None:
        """The boundary behind a step; where it is to be saved, the Trainer does so next."""
        assert self._manager is not None
        step = self._asked = state.global_step
        self._written = None
        with _framework.Leaving(self._leave):
            saves = self._manager.should_save(step, force=control.should_save)
            leaves = self._manager.reached_preemption(step)
        if not saves:
            return
        control.should_save = True
        if control.should_evaluate and leaves:
            control.should_evaluate = False
            _framework.log.warning(
                "the evaluation of step %d is left out: the job is being terminated", step
            )
        path = self._path(args, state)
        if args.should_save:
            (path / _SEAL).unlink(missing_ok=True)  # what is there is written again
        self._manager._watch(path, None)

    def _commit(self, args: Any, state: Any) -> None:
        assert self._manager is not None
        measured = [row for row in state.log_history if row.get("step") == state.global_step]
        with _framework.Leaving(self._leave):
            saved = self._manager.save(
                state.global_step,
                force=True,
                metrics={
                    name: value
                    for row in measured
                    for name, value in row.items()
                    if name.startswith("eval_") and isinstance(value, (int, float))
                },
                metadata={"path": str(self._written), "global_step": state.global_step},
                epoch=int(state.epoch),
            )
            if saved:
                self._rotate(args, state)

    def _rotate(self, args: Any, state: Any) -> None:
        """The Trainer's own would delete the committed checkpoint for one that is not yet."""
        if args.should_save:
            rotate_checkpoints(
                args.output_dir, self._limit, state.best_model_checkpoint, use_mtime=True
            )

    def _stop(self) -> Manager | None:
        manager, self._manager = self._manager, None
        return manager

    def _leave(self, raised: BaseException) -> None:
        manager = self._stop()
        if manager is not None:
            manager.__exit__(type(raised), raised, raised.__traceback__)

    # --- what muster's checkpoint holds -----------------------------------------------------

    @staticmethod
    def _path(args: Any, state: Any) -> pathlib.Path:
        return pathlib.Path(os.path.abspath(args.output_dir), f"checkpoint-{state.global_step}")

    def _save(self, context: SaveContext) -> None:
        path = self._written
        if path is None:
            raise RuntimeError(
                f"the Trainer has ended, and wrote no checkpoint of step {self._asked}; the job "
                "goes on behind an older one"
            )
        seal = dataclasses.asdict(_Seal(context.generation, context.round))
        if self._args.should_save:
            _write(path / _SEAL, seal)
        _progress.sync(path)
        _write(context.directory / _POINTER, {"path": str(path), **seal})

    def _restore(self, context: RestoreContext) -> None:
        assert context.directory is not None
        pointer = _read(context.directory / _POINTER)
        path = pathlib.Path(pointer.pop("path"))
        if not path.is_dir():
            raise FileNotFoundError(
                f"{path}, which muster's checkpoint in {context.directory} names, is gone; put it "
                "back, or start another job"
            )
        if not (path / _SEAL).exists() or _read(path / _SEAL) != pointer:
            raise ValueError(
                f"{path} was written again by a save that was not committed; remove the "
                f"checkpoint in {context.checkpoint_directory}, or start another job"
            )
        self._restored = str(path)


__all__ = ["Muster"]
