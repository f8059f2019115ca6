"""Keras 3: a callback that backs up and restores with all ranks. Tested with keras 3.15 and its
backend jax.

from muster.keras import BackupAndRestore

model.fit(x, y, epochs=5, callbacks=[BackupAndRestore("backup")])    # one import changes
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras

from . import _framework

_framework.check_version("muster.keras", "keras", keras.__version__)

import numpy

from ._errors import misused, unfit, wrong
from ._manager import KeepLatest, Manager
from ._member import RestoreContext, SaveContext

_BACKENDS = ("jax", "torch")
_WEIGHTS = "model.weights.h5"  # as Keras writes it, with the optimizer's
_REST = "rest.npz"  # what Keras leaves out: random seeds, and metrics of this epoch
_PLACE = "place.json"


def _random() -> dict[str, Any]:
    """The state of this process's global random numbers, of which Keras shuffles."""
    name, keys, *rest = numpy.random.get_state()
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": [name, [int(key) for key in keys], *rest],
    }
    if "torch" in sys.modules:
        state["torch"] = sys.modules["torch"].get_rng_state().tolist()
    return state


def _set_random(state: Mapping[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    numpy.random.set_state(tuple(state["numpy"]))
    if "torch" in state and "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))


def _rest(model: Any) -> list[Any]:
    """The variables that Keras does not save: random seeds, and metrics."""
    saved = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in saved]


class BackupAndRestore(keras.callbacks.Callback):  # type: ignore[misc] # keras is not read here
    """keras.callbacks.BackupAndRestore, with all ranks: they save at one agreed batch when one of
    them has to go; then muster.Preempted is raised out of fit, a SystemExit with the restart code.

    fit goes on after the batch that was saved. The batches before it in that epoch are read and
    not trained on, so the data has to come in the same order: arrays, also shuffled ones, and a
    PyDataset do. Other callbacks see the batches that are left out too.
    Each rank saves what it holds, its random numbers too, and gets its own back. The next launch
    has the same number of ranks. The model is built before fit.

    backup_dir: of muster's checkpoints, seen by all ranks. save_freq: "epoch", a number of
    batches, or False: then only agreed saves are made. double_checkpoint: keep the last two, and
    restore the older one if the newest is damaged. delete_checkpoint: must be False; the newest
    checkpoint of a job stays, and another job begins from the start.
    options: those of muster.Manager, as grace and sources.
    Raises ValueError for what it cannot do, and muster.Error.
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int | bool = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if not backup_dir:
            raise wrong("backup_dir is empty; give a directory that all ranks see")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise wrong(f"save_freq is {save_freq!r}; give 'epoch', batches, or False")
        if delete_checkpoint:
            raise wrong(
                "delete_checkpoint is True, and muster keeps the newest checkpoint of a job; leave "
                "it out, and start another job (MUSTER_JOB) to begin from the start"
            )
        if keras.backend.backend() not in _BACKENDS:
            raise wrong(
                f"muster.keras knows the backends {' and '.join(_BACKENDS)}, but Keras uses "
                f"{keras.backend.backend()}; set KERAS_BACKEND to one of them"
            )
        self._options = {
            "directory": os.path.abspath(backup_dir),
            "keep": [KeepLatest(2 if double_checkpoint else 1)],
            "fallback": double_checkpoint,
            **_framework.own_parts(options),
        }
        self._every = 0 if save_freq == "epoch" else int(save_freq)
        self._at_epochs = save_freq == "epoch"
        self._manager: Manager | None = None
        self._left = False
        self._number = 0  # muster's, of the next boundary: after each batch, and each epoch
        self._batches = 0  # trained on so far
        self._epoch = 0  # the epoch that goes on after a save,
        self._done = 0  # and how many of its batches are done
        self._begun: dict[str, Any] = {}  # random numbers at its beginning
        self._restored: dict[str, Any] | None = None  # until fit stands there
        self._rest: list[Any] = []

    # --- Keras' calls -----------------------------------------------------------------------

    def on_train_begin(self, logs: Any = None) -> None:
        if self._left:
            raise misused("this callback has left its job; a process runs one fit of a job")
        model = self.model
        if not model.built:
            raise wrong("the model is not built, so it cannot be restored; call model.build()")
        if model.optimizer is not None and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        self._manager = Manager(save_fn=self._save, restore_fn=self._restore, **self._options)
        try:
            restored = self._manager.restore()
        except BaseException as raised:
            self._leave(raised)  # Keras calls no on_train_end then
            raise
        if restored is None:
            return
        self._number = restored.step + 1
        assert self._restored is not None
        self._batches = self._restored["batches"]
        model._initial_epoch = self._restored["epoch"]  # as Keras' own callback does
        if self._restored["done"]:
            model.train_function = _Skip(model.train_function, model.steps_per_execution)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._done = epoch, 0
        if self._restored is not None:
            _set_random(self._restored["begun"])
            if not self._restored["done"]:
                self._stand()
        self._begun = _random()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        batches = batch + 1 - self._done
        self._done = batch + 1
        if self._restored is not None:
            if self._done >= self._restored["done"]:
                self._stand()
            return
        before, self._batches = self._batches, self._batches + batches
        every = self._every
        self._turn(bool(every) and self._batches // every > before // every)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._done, self._begun = epoch + 1, 0, _random()
        self._turn(self._at_epochs)

    def on_train_end(self, logs: Any = None) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the job, as the end of fit does. Raises Preempted and other muster.Error."""
        manager = self._stop()
        if manager is not None:
            manager.close()

    # --- saves ------------------------------------------------------------------------------

    def _turn(self, wanted: bool) -> None:
        assert self._manager is not None
        number, self._number = self._number, self._number + 1
        place = {"epoch": self._epoch, "batch": self._done, "batches": self._batches}
        with _framework.Leaving(self._leave):
            self._manager.save(
                number,
                force=wanted,
                metadata=place,
                epoch=self._epoch,
                step_in_epoch=self._done,
            )

    def _stop(self) -> Manager | None:
        manager, self._manager = self._manager, None
        self._left = True
        return manager

    def _leave(self, raised: BaseException) -> None:
        manager = self._stop()
        if manager is not None:
            manager.__exit__(type(raised), raised, raised.__traceback__)

    def _save(self, context: SaveContext) -> None:
        model = self.model
        model.save_weights(str(context.directory / _WEIGHTS))
        rest = [keras.ops.convert_to_numpy(variable.value) for variable in _rest(model)]
        numpy.savez(context.directory / _REST, *rest)
        place = {
            "epoch": self._epoch,
            "done": self._done,
            "batches": self._batches,
            "begun": self._begun,
            "random": _random(),
        }
        (context.directory / _PLACE).write_text(json.dumps(place), encoding="utf-8")

    def _restore(self, context: RestoreContext) -> None:
        assert context.directory is not None
        try:
            self.model.load_weights(str(context.directory / _WEIGHTS))
        except (ValueError, KeyError) as error:
            raise unfit("the model", error) from error
        with numpy.load(context.directory / _REST) as rest:
            self._rest = [rest[f"arr_{at}"] for at in range(len(rest.files))]
        place = pathlib.Path(context.directory, _PLACE).read_text(encoding="utf-8")
        self._restored = json.loads(place)

    def _stand(self) -> None:
        """fit stands where the save was made: random numbers and metrics are as they were."""
        assert self._restored is not None
        model = self.model
        if isinstance(model.train_function, _Skip):
            model.train_function = model.train_function.trains
        variables = _rest(model)
        if len(variables) != len(self._rest):
            raise wrong(
                f"the model has {len(variables)} random seeds and metrics, and the checkpoint "
                f"{len(self._rest)}; compile the same metrics as when it was saved"
            )
        for variable, value in zip(variables, self._rest, strict=True):
            variable.assign(value)
        _set_random(self._restored["random"])
        self._restored, self._rest = None, []


class _Skip:
    """Replaces the model's train_function for batches that are not trained on."""

    def __init__(self, trains: Callable[..., Any], batches: int) -> None:
        self.trains = trains
        self._batches = batches  # that one call takes

    def __call__(self, *arguments: Any) -> Any:
        data = arguments[-1]
        if isinstance(data, Iterator):  # else they are drawn already
            for _ in range(self._batches):
                next(data)
        return ({}, arguments[0]) if keras.backend.backend() == "jax" else {}


__all__ = ["BackupAndRestore"]
