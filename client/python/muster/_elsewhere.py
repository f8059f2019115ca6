"""What muster.jax, muster.orbax and muster.transformers share: checkpoints that the program writes
where it likes, at steps of its own. muster's checkpoint of such a step is a small file that points
to it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from . import _framework, _progress
from ._checkpoints import CheckpointInfo
from ._errors import BrokerError, Error, WaitTimeout, missing, wrong
from ._log import log
from ._manager import Manager
from ._member import RestoreContext, SaveContext

_POINTER = "pointer.json"
_FORGETS = 4  # records that one boundary deletes


@dataclasses.dataclass(frozen=True)
class Saved:
    """A committed checkpoint of the program's own: what it counts as step, and where it wrote.

    generation: the launch that saved it.
    """

    step: int
    path: str
    generation: int = 0


def local(path: str) -> pathlib.Path | None:
    """A path of this machine's file system; None = of an object store, as gs://bucket/run."""
    return None if "://" in path else pathlib.Path(path)


def _is_there(saved: Saved) -> bool:
    """Raises OSError when that cannot be told."""
    place = local(saved.path)
    try:
        if place is not None:
            os.lstat(place)
    except FileNotFoundError:
        return False
    return True


def _has_place_of(saved: Saved, other: Saved) -> bool:
    """Do both lie in one folder? Another one may be a disk that is not mounted now."""
    place, others = local(saved.path), local(other.path)
    return place is not None and others is not None and place.parent == others.parent


def read_pointer(checkpoint: pathlib.Path) -> Saved:
    """What muster's checkpoint in this directory points to. All its ranks wrote the same."""
    found = {path.read_text(encoding="utf-8") for path in checkpoint.glob(f"*/{_POINTER}")}
    if len(found) != 1:
        raise wrong(
            f"{checkpoint} points to {len(found)} checkpoints instead of one; was it saved by this "
            "module of muster's? Start another job, or restore an older one"
        )
    return Saved(**json.loads(found.pop()))


class Elsewhere:
    """The boundaries of such a program. All ranks ask about the same steps, in the same order.

    A program may leave steps out. So muster numbers the calls: the first one has the program's own
    step, and each later one has one more. Opening joins the job, and waits for the other ranks.
    check: raises when what the program wrote is not what was committed.
    options: those of muster.Manager. Any number of ranks restores, unless they say otherwise.
    """

    def __init__(self, *, check: Callable[[Saved], object] | None = None, **options: Any) -> None:
        self.latest: Saved | None = None  # the newest committed one, the same on all ranks
        self.asked: int | None = None  # the program's step whose boundary was passed last
        self.saves = False  # whether that one is saved
        self.leaves_at: int | None = None  # the program's step that is saved for a termination
        self.number = -1  # of the last boundary
        self._counted = False  # number is the job's own
        self._forgets_behind: int | None = None  # a step: later ones may have; None = none may
        self._pointed: dict[str, Saved] = {}  # by the path of muster's checkpoint
        self._written: Saved | None = None
        self._check = check
        self._manager: Manager | None = Manager(
            save_fn=self._save,
            restore_fn=self._restore,
            **{"restore_any_world_size": True, **_framework.own_parts(options)},
        )
        try:
            restored = self._manager.restore()
        except BaseException as raised:
            self.leave(raised)
            raise
        if restored is not None:
            self.number, self._counted, self._forgets_behind = restored.step, True, -1

    @property
    def manager(self) -> Manager:
        if self._manager is None:
            raise wrong("this job was left already; make another manager in a new process")
        return self._manager

    @property
    def is_open(self) -> bool:
        return self._manager is not None

    def ask(self, step: int, wanted: bool) -> bool:
        """The boundary after `step`: is it saved? wanted: by the program, alike on all ranks.

        A step that was asked about gets the same answer again, unless it is wanted by now.
        """
        if step == self.asked and (self.saves or not wanted):
            return self.saves
        self._forget_old()
        self.number = self.number + 1 if self._counted else max(step, 0)
        self.asked, self.saves, self._counted, self._written = step, False, True, None
        with _framework.Leaving(self.leave):
            self.saves = self.manager.should_save(self.number, force=wanted)
            if self.saves and self.manager.reached_preemption(self.number):
                self.leaves_at = step
        return self.saves

    def leaves(self, step: int) -> bool:
        """Is the job being terminated, and `step` the one that is saved for it, or a later one? A
        look-up, for any thread.
        """
        return self.leaves_at is not None and step >= self.leaves_at

    def writes(self, path: str, *, later: bool = False) -> None:
        """The program begins to write what ask() said is saved; until commit, or leave.

        later: it may do something else first, for as long as it likes.
        """
        place = local(path)
        patience = None if place is None or later else _progress.PATIENCE
        self.manager._watch(place, patience)

    def commit(
        self,
        step: int,
        path: str,
        *,
        writer: bool,
        metrics: Mapping[str, float],
        epoch: int | None = None,
    ) -> bool:
        """The program has written `step`. Is it committed, by all ranks? Raises Preempted after
        a save that ends the job.

        writer: this process makes the files durable, and tells their size.
        """
        written = Saved(step, path, self.manager.generation)
        self.saves = False
        metadata: dict[str, Any] = dataclasses.asdict(written)
        saved = False
        with _framework.Leaving(self.leave):
            place = local(path)
            # Another host may not see yet what rank 0, whose record counts, has renamed.
            if writer and place is not None and (
                self.manager.rank == 0 or os.path.exists(place)
            ):
                metadata |= self.manager._written(place)
            self._written = written  # not before: leaving commits what is written
            saved = self.manager.save(
                self.number, force=True, metrics=metrics, metadata=metadata, epoch=epoch
            )
        if saved:
            self.latest, self._forgets_behind = written, -1
        return saved

    def forget_gone(self) -> None:
        """Deletes muster's record of each step whose files the program has deleted, a few at a
        time: other ranks may wait. Called after each save, and by close.

        Only files count that lay where the newest are, and those have to be there: a disk that is
        away may return.
        """
        behind = -1 if self._forgets_behind is None else self._forgets_behind
        self._forgets_behind = None
        left = _FORGETS
        try:
            if self.latest is None or not _is_there(self.latest):
                return
            for info in self.manager.all_steps():
                if info.step <= behind or not self._is_gone(info, self.latest):
                    continue
                self._forget(info)
                left -= 1
                if left == 0:
                    self._forgets_behind = info.step
                    return
        except (Error, OSError) as raised:
            log.warning("records of deleted checkpoints are kept: %s", raised)

    def _is_gone(self, info: CheckpointInfo, latest: Saved) -> bool:
        try:
            if info.path not in self._pointed:
                self._pointed[info.path] = read_pointer(pathlib.Path(info.path))
            saved = self._pointed[info.path]
            return _has_place_of(saved, latest) and not _is_there(saved)
        except (OSError, ValueError, TypeError) as raised:
            log.warning("the record of step %d is kept: %s", info.step, raised)
            return False

    def _forget(self, info: CheckpointInfo) -> None:
        try:
            self.manager.delete(info.step)
            del self._pointed[info.path]
        except (BrokerError, WaitTimeout):
            raise
        except Error as raised:  # pinned, or gone already
            log.warning("the record of step %d is kept: %s", info.step, raised)

    def close(self) -> None:
        """Leaves the job. Raises Preempted when it is being terminated."""
        try:
            if self._manager is not None:
                self._forget_old()
        finally:
            manager = self._stop()
            if manager is not None:
                manager.close()

    def leave(self, raised: BaseException) -> None:
        """Leaves the job while an exception is on its way, which the other ranks are told."""
        manager = self._stop()
        if manager is not None:
            manager.__exit__(type(raised), raised, raised.__traceback__)

    def _forget_old(self) -> None:
        """Most programs delete older checkpoints after a save. One rank's look is enough."""
        if self._forgets_behind is None or self.manager.announced is not None:
            return  # the last save comes first
        if self.manager.rank == 0:
            self.forget_gone()
        else:
            self._forgets_behind = None

    def _stop(self) -> Manager | None:
        manager, self._manager = self._manager, None
        if manager is not None:
            manager._owes = False  # _save knows what is written
        return manager

    def _save(self, context: SaveContext) -> None:
        if self._written is None:
            raise RuntimeError(  # no muster.Error: it goes before the exception that leaves
                f"the program has ended, and wrote no checkpoint of step {self.asked}; the job "
                "goes on from an older checkpoint"
            )
        pointer = json.dumps(dataclasses.asdict(self._written))
        (context.directory / _POINTER).write_text(pointer, encoding="utf-8")

    def _restore(self, context: RestoreContext) -> None:
        self.latest = read_pointer(context.checkpoint_directory)
        place = local(self.latest.path)
        if place is not None and not place.exists():
            raise missing(
                f"{place}, which muster's checkpoint in {context.checkpoint_directory} names, is "
                "gone; put it back, or start another job"
            )
        if self._check is not None:
            self._check(self.latest)
