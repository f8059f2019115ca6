"""Orbax: its CheckpointManager, with saves that all processes agree on. Tested with orbax 0.12.

import muster.orbax

with muster.orbax.CheckpointManager(path, options=options) as mngr:      # one line changes
    first = mngr.latest_step()
    ...
    mngr.save(step, args=ocp.args.StandardSave(state))    # raises muster.Preempted
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orbax.checkpoint as ocp

from . import _framework

_framework.check_version("muster.orbax", "orbax-checkpoint", ocp.__version__)

import jax
from etils import epath
from orbax.checkpoint import checkpoint_managers as policies

from ._elsewhere import Elsewhere, local, read_pointer
from ._errors import Error, RestoreError, misused, wrong
from ._hooks import add_unfit
from ._log import log
from ._native import lib
from ._tasks import _apart
from .jax import answer_preemption_sync, check_world, replace_preemption_service

_SEAL = "muster"  # in the custom metadata of a step that was saved together with muster
_SET_ASIDE = ".orbax-checkpoint-tmp-uncommitted"  # a name that Orbax takes for an unfinished save
_ONLY_ITEM = "default"  # Orbax' folder of the state, where items have no names
_METRIC = re.compile(r"[A-Za-z0-9._/-]{1,63}")  # a name that muster records


class _KeepAll(policies.PreservationPolicy):  # type: ignore[misc] # orbax is not read here
    """Orbax deletes before muster has committed; so it deletes nothing. See _tidy."""

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> Sequence[bool]:
        return [True] * len(checkpoints)


def _preservation(options: Any) -> Any:
    """What the program wants to keep, as Orbax makes it of its options."""
    if options.preservation_policy is not None:
        return options.preservation_policy
    wanted: list[Any] = []
    if options.keep_period is not None:
        wanted.append(policies.EveryNSteps(options.keep_period))
    if options.keep_time_interval is not None:
        seconds = int(options.keep_time_interval.total_seconds())
        wanted.append(policies.EveryNSeconds(interval_secs=seconds))
    if options.best_fn is not None:
        best = policies.BestN(
            get_metric_fn=options.best_fn,
            reverse=options.best_mode == "min",
            n=options.max_to_keep,
            keep_checkpoints_without_metrics=options.keep_checkpoints_without_metrics,
        )
        wanted.append(best)
    else:
        wanted.append(policies.LatestN(n=options.max_to_keep))
    return policies.AnyPreservationPolicy(wanted)


def _without_deletion(options: Any) -> Any:
    return dataclasses.replace(
        options,
        max_to_keep=None,
        keep_period=None,
        keep_time_interval=None,
        preservation_policy=_KeepAll(),
    )


def _numbers(metrics: Any) -> dict[str, float]:
    """The metrics that muster can record: names and numbers of a flat mapping."""
    if not isinstance(metrics, Mapping):
        return {}
    found = {}
    for name, value in metrics.items():
        try:
            if _METRIC.fullmatch(name):
                found[name] = float(value)
        except (TypeError, ValueError):
            pass  # a tree or a text, which Orbax alone keeps
    return found


def _shape(leaf: Any) -> tuple[int, ...] | None:
    """Of an array, as Orbax stores it; None: it is none. A number may only stand for an array."""
    if isinstance(leaf, ocp.metadata.ScalarMetadata):
        return ()
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return None
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return tuple(leaf.shape)


def _is_strict(arg: Any) -> bool:
    return bool(getattr(arg, "strict", True))


def _check_target(place: Any, target: Any, item: tuple[str, ...]) -> None:
    """Raises RestoreError for the first array of `target` that was saved with another shape. Another
    type is no fault: Orbax converts it.
    """
    how: Any = None
    if isinstance(target, (ocp.args.StandardRestore, ocp.args.PyTreeRestore)):
        if not _is_strict(target) or getattr(target, "transforms", None) is not None:
            return
        target, how = target.item, getattr(target, "restore_args", None)
    if target is None or isinstance(target, ocp.args.CheckpointArgs):
        return
    try:
        saved = ocp.tree.to_flat_dict(ocp.PyTreeCheckpointHandler().metadata(place).tree)
    except FileNotFoundError:
        return  # of an older Orbax, or Orbax itself says what is missing
    loose = {path for path, arg in ocp.tree.to_flat_dict(how).items() if not _is_strict(arg)}
    for path, leaf in ocp.tree.to_flat_dict(target).items():
        was, is_now = _shape(saved.get(path)), _shape(leaf)
        if was is None or is_now is None or path in loose or was == is_now:
            continue
        raise RestoreError(
            lib.MUSTER_E_RESTORE,
            f"the state does not fit the checkpoint: {'.'.join(item + path)} was saved with "
            f"shape {was}, and is to be restored with shape {is_now} ({place}). Make it as it was "
            "at the save, or start another job; with strict=False Orbax cuts or pads the array",
        )


class CheckpointManager(ocp.CheckpointManager):  # type: ignore[misc] # orbax is not read here
    """orbax.checkpoint.CheckpointManager, with the same arguments and methods. All processes save
    at one agreed step when one of them has to go; then muster.Preempted is raised, a SystemExit
    with the restart code.

    Orbax writes. muster says when, and commits a step once all processes have written it.
    Construct it on all processes, after jax.distributed.initialize(): this joins the job, and waits
    for the others. Call save, or should_save, on all processes after each step, or each k-th.

    - latest_step() is the newest committed step, the same on all processes. A newer one that a
      killed save left behind is set aside under a name that cleanup_tmp_directories removes.
    - What options keep is counted from the commit on. The newest step is always kept.
    - save returns when the step is committed, also with enable_async_checkpointing.
    - A process has one such manager. For several items give item_names.
    - A manager with read_only takes no part, and is Orbax' own.

    muster: options of muster.Manager, as {"grace": 60}. The directory of muster's own small files
    is by default MUSTER_CHECKPOINT_DIR, else "muster" in the manager's directory.
    Raises muster.Error, and RuntimeError when JAX and muster do not count the same processes.
    """

    def __init__(
        self,
        directory: Any,
        checkpointers: Any = None,
        options: Any = None,
        metadata: Any = None,
        item_names: Any = None,
        item_handlers: Any = None,
        logger: Any = None,
        handler_registry: Any = None,
        *,
        muster: Mapping[str, Any] | None = None,
    ) -> None:
        options = options or ocp.CheckpointManagerOptions()
        self._elsewhere: Elsewhere | None = None
        self._deciding = False  # Orbax' own policies are asked
        self._step_numbers: dict[int, int] = {}  # muster's number of a committed step
        self._preserves = _preservation(options)
        if not options.read_only:
            self._elsewhere = _join(str(directory), muster or {})
            options = _without_deletion(options)
        try:
            super().__init__(
                directory,
                checkpointers,
                options=options,
                metadata=metadata,
                item_names=item_names,
                item_handlers=item_handlers,
                logger=logger,
                handler_registry=handler_registry,
            )
            if self._elsewhere is not None:
                self._agree(self._elsewhere)
        except BaseException as raised:
            self._leave(raised)
            raise

    # --- Orbax' methods ---------------------------------------------------------------------

    def should_save(self, step: int) -> bool:
        """Will save(step) save? The boundary after `step`: with False the step is over. Raises
        muster.Preempted and other muster.Error.
        """
        if self._elsewhere is None:
            return bool(super().should_save(step))
        return self._ask(self._elsewhere, step, force=False)

    def reached_preemption(self, step: int) -> bool:
        """Is the job being terminated, and `step` the one that is saved for it, or a later one? For
        a step that was not asked about yet this is its boundary, as should_save.
        """
        elsewhere = self._elsewhere
        if elsewhere is None or self._deciding:
            return False
        if elsewhere.is_open and (elsewhere.asked is None or step > elsewhere.asked):
            self._ask(elsewhere, step, force=False)
        return elsewhere.leaves(step)

    def save(
        self,
        step: int,
        items: Any = None,
        save_kwargs: Any = None,
        metrics: Any = None,
        force: bool | None = False,
        args: Any = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> bool:
        """The boundary after `step`: saves it if Orbax' policies say so, if forced, or if the job
        is preempted. Returns whether it is committed; False too if the save failed, which the log
        tells.

        Raises muster.Preempted after the save that ends the job, and what Orbax raises while it
        writes, after which this process has left the job.
        """
        given = {"items": items, "save_kwargs": save_kwargs, "metrics": metrics, "args": args}
        elsewhere = self._elsewhere
        if elsewhere is None:
            return bool(
                super().save(step, force=force, custom_metadata=custom_metadata, **given)
            )
        if force and step in self.all_steps():
            raise ocp.checkpoint_manager.StepAlreadyExistsError(
                f"Checkpoint for step {step} already exists."
            )
        if not self._ask(elsewhere, step, force=bool(force)):
            return False
        seal = {"generation": elsewhere.manager.generation, "step": elsewhere.number}
        path = str(self._get_save_directory(step, self.directory))
        elsewhere.writes(path)
        try:
            metadata = {**(custom_metadata or {}), _SEAL: seal}
            super().save(step, force=True, custom_metadata=metadata, **given)
            super().wait_until_finished()
        except BaseException as raised:
            self._leave(raised)
            raise
        return self._commit(elsewhere, step, path, metrics)

    def restore(
        self,
        step: int | None,
        items: Any = None,
        restore_kwargs: Any = None,
        directory: Any = None,
        args: Any = None,
    ) -> Any:
        """Orbax' own. The arrays that it restores into have the shapes that were saved, unless the
        arguments say strict=False. Orbax alone gives back a NumPy array of the saved shape instead.

        Raises RestoreError with the first array that differs. Orbax' own ValueError gets muster's
        text as a note.
        """
        if step is None and directory is None:
            step = self.latest_step()
        place = epath.Path(directory or self.directory)
        try:
            if step is not None:
                self._check_targets(step, place, items if args is None else args)
            return super().restore(step, items, restore_kwargs, directory, args)
        except ValueError as raised:
            add_unfit(raised, "the state", f"step {step} in {place}")
            raise

    def close(self) -> None:
        """Leaves the job, and closes what Orbax has open. While an exception is on its way, the
        other ranks are told it. Raises muster.Preempted when the job is being terminated.
        """
        raised = sys.exc_info()[1]
        if raised is not None:
            self._leave(raised)
        super().close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def __contextmanager__(self) -> Iterator[CheckpointManager]:
        try:
            yield self
        finally:
            self.close()

    # --- saves ------------------------------------------------------------------------------

    def _ask(self, elsewhere: Elsewhere, step: int, force: bool) -> bool:
        wanted = force
        if not wanted and step != elsewhere.asked:
            self._deciding = True
            try:
                wanted = bool(super().should_save(step))
            finally:
                self._deciding = False
        return elsewhere.ask(step, wanted)

    def _commit(self, elsewhere: Elsewhere, step: int, path: str, metrics: Any) -> bool:
        number = elsewhere.number
        saved = elsewhere.commit(
            step, path, writer=self._is_primary(), metrics=_numbers(metrics)
        )
        if saved:
            self._step_numbers[step] = number
            self._tidy(elsewhere)
        else:
            self._checkpoints.delete_if(lambda info: info.step == step)
        return saved

    def _tidy(self, elsewhere: Elsewhere) -> None:
        """Deletes what is not to be kept: muster's record first, so that none points to nothing."""
        infos = list(self._checkpoints)
        kept = self._preserves.should_preserve(infos, context=policies.PreservationContext())
        for info, keep in list(zip(infos, kept, strict=True))[:-1]:
            if not keep and self._forget(elsewhere, info.step):
                self._checkpoints.delete_if(lambda other, step=info.step: other.step == step)

    def _forget(self, elsewhere: Elsewhere, step: int) -> bool:
        number = self._step_numbers.pop(step, None)
        if not self._is_primary():
            return True
        try:
            if number is not None:
                elsewhere.manager.delete(number)
        except Error as raised:  # pinned, or another rank restores it
            log.warning("step %d is kept: %s", step, raised)
            return False
        self._checkpoint_deleter.delete(step)
        return True

    def _is_primary(self) -> bool:
        host = self._multiprocessing_options.primary_host
        return bool(ocp.multihost.is_primary_host(host))

    # --- what a restore is given -------------------------------------------------------------

    def _check_targets(self, step: int, directory: Any, targets: Any) -> None:
        place = self._get_read_step_directory(step, directory)
        if (place / _ONLY_ITEM).exists():
            targets = {_ONLY_ITEM: targets}
        if isinstance(targets, (Mapping, ocp.args.Composite)):
            for name, target in targets.items():
                _check_target(place / name, target, () if name == _ONLY_ITEM else (name,))

    # --- the beginning ----------------------------------------------------------------------

    def _agree(self, elsewhere: Elsewhere) -> None:
        """All processes see the same steps, of which the newest is the one that muster resumes."""
        answer_preemption_sync(self.reached_preemption)
        newest = None if elsewhere.latest is None else elsewhere.latest.step
        if newest is None:
            return  # what is there is from before muster, and complete
        if self._is_primary():
            for step in [step for step in self.all_steps() if step > newest]:
                self._set_aside(step, newest)
            for info in elsewhere.manager.all_steps():
                saved = read_pointer(pathlib.Path(info.path))
                self._step_numbers[saved.step] = info.step
        processes = self._multiprocessing_options.active_processes
        _apart(lambda: ocp.multihost.sync_global_processes("muster:agreed", processes=processes))
        self.reload()
        if self.latest_step() != newest:
            raise misused(
                f"the job goes on after step {newest}, and the newest in {self.directory} is "
                f"{self.latest_step()}; give the manager the directory and the step names that it "
                "had, or start another job"
            )

    def _set_aside(self, step: int, newest: int) -> None:
        path = pathlib.Path(str(self._get_read_step_directory(step, self.directory)))
        if _SEAL not in (super().metadata(step).custom_metadata or {}):
            raise misused(
                f"{path} was saved without muster, and the job goes on after step {newest}; move "
                "it elsewhere to go on after that step, or start another job to go on after it"
            )
        number = 0
        while (aside := path.with_name(f"{path.name}{_SET_ASIDE}-{number}")).exists():
            number += 1
        path.rename(aside)
        log.warning(
            "%s was not committed by all ranks, and is %s now; the job goes on after step %d",
            path,
            aside.name,
            newest,
        )

    def _leave(self, raised: BaseException) -> None:
        if self._elsewhere is not None:
            self._elsewhere.leave(raised)


def _join(directory: str, options: Mapping[str, Any]) -> Elsewhere:
    place = dict(options)
    if "directory" not in place and not os.environ.get("MUSTER_CHECKPOINT_DIR"):
        if local(directory) is None:
            raise wrong(
                f"muster's own small files cannot be in {directory}; set MUSTER_CHECKPOINT_DIR to "
                "a directory that all ranks see"
            )
        place["directory"] = os.path.join(directory, "muster")
    replace_preemption_service()
    elsewhere = Elsewhere(**place)
    check_world(elsewhere)
    return elsewhere


__all__ = ["CheckpointManager"]
