"""Manager: checkpoints by policy, with the method names of Orbax' CheckpointManager."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._checkpoints import CheckpointInfo, Checkpoints, told_number
from ._errors import (
    SaveError,
    encoded,
    flag,
    integer,
    listed,
    milliseconds,
    misused,
    natural,
    number,
    wrong,
    wrong_type,
)
from ._member import Member, RestoreContext, SaveContext, borrowed_text, node_options
from ._native import ffi, lib
from ._progress import PATIENCE, Progress, written
from ._state import TrainingState


# Node's options that Manager hands on as they are.
_NODE_OPTIONS = set(inspect.signature(node_options).parameters) - {
    "fallback",
    "restore",
    "restore_later",
    "save",
    "save_every",
    "state",
}
_should_save = lib.muster_py_should_save  # looked up once: it is called after each step
_CHANGES_NOTHING = (lib.MUSTER_E_ARGUMENT, lib.MUSTER_PY_IN_A_CALL)
_METADATA_BYTES_MAX = 16_383  # as struct muster_save_request says


@dataclasses.dataclass(frozen=True)
class _Policy:
    _kind = 0

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        policy.kind = self._kind


@dataclasses.dataclass(frozen=True)
class _Number(_Policy):
    number: int

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        policy.kind = self._kind
        policy.number = integer("number", self.number, bits=62)


@dataclasses.dataclass(frozen=True)
class _Seconds(_Policy):
    seconds: float

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        policy.kind, policy.number = self._kind, milliseconds("seconds", self.seconds)


@dataclasses.dataclass(frozen=True)
class _Steps(_Policy):
    steps: Sequence[int]

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        steps = listed("steps", self.steps, "steps")
        numbers = ffi.new("int64_t[]", [integer("steps", step, bits=62) for step in steps])
        memory.append(numbers)
        policy.kind, policy.steps, policy.steps_count = self._kind, numbers, len(numbers)


class KeepLatest(_Number):
    """The newest `number`."""

    _kind = lib.MUSTER_KEEP_LATEST


@dataclasses.dataclass(frozen=True)
class KeepEverySteps(_Number):
    """Steps that `number` divides; the newest `max_to_keep` of them."""

    max_to_keep: int | None = None
    _kind = lib.MUSTER_KEEP_EVERY_STEPS

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        super()._fill(policy, memory)
        if self.max_to_keep is not None:
            most = integer("max_to_keep", self.max_to_keep, bits=62)
            if most < 1:
                raise wrong(f"max_to_keep is {most}; give 1 or more, or None for all")
            policy.max_to_keep = most


class KeepEveryStepsClosest(KeepEverySteps):
    """For each multiple of `number` the nearest step that was saved; the newest `max_to_keep` of these."""

    _kind = lib.MUSTER_KEEP_EVERY_STEPS_CLOSEST


class KeepSteps(_Steps):
    """These steps."""

    _kind = lib.MUSTER_KEEP_STEPS


class KeepEvery(_Seconds):
    """One checkpoint in each such span of time: kept if it was committed at least that long after
    the last one that this policy kept.
    """

    _kind = lib.MUSTER_KEEP_EVERY_MS


class KeepLast(_Seconds):
    """All that were committed within this span of time before the newest."""

    _kind = lib.MUSTER_KEEP_LAST_MS


@dataclasses.dataclass(frozen=True)
class KeepBest(_Policy):
    """The best `number` by a metric; smaller is better, unless `greatest`."""

    metric: str
    number: int = 1
    greatest: bool = False
    keep_unmeasured: bool = False
    _kind = lib.MUSTER_KEEP_BEST

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        metric = ffi.new("char[]", encoded("metric", self.metric))
        memory.append(metric)
        policy.kind, policy.metric = self._kind, metric
        policy.number = integer("number", self.number, bits=62)
        policy.greatest = flag("greatest", self.greatest)
        policy.keep_unmeasured = flag("keep_unmeasured", self.keep_unmeasured)


class SaveEverySteps(_Number):
    """Each step that is a multiple of `number`."""

    _kind = lib.MUSTER_SAVE_EVERY_STEPS


class SaveSteps(_Steps):
    """These steps."""

    _kind = lib.MUSTER_SAVE_STEPS


@dataclasses.dataclass(frozen=True)
class SaveFirst(_Policy):
    """The first step, if nothing was ever saved."""

    _kind = lib.MUSTER_SAVE_FIRST


class SaveEvery(_Seconds):
    """A save each time this span has passed since the last save began."""

    _kind = lib.MUSTER_SAVE_PERIOD_MS


@dataclasses.dataclass(frozen=True)
class SaveShare(_Policy):
    """Saves as often as they take at most this share of the time: 0.02 is two percent."""

    share: float
    _kind = lib.MUSTER_SAVE_OVERHEAD

    def _fill(self, policy: Any, memory: list[Any]) -> None:
        policy.kind, policy.share = self._kind, number("share", self.share)


@dataclasses.dataclass(frozen=True)
class Restored:
    """What restore() found. step: index of the restored step; training goes on with step + 1.

    fell_back: there was a newer one that not all ranks could restore.
    """

    step: int
    checkpoint: int
    epoch: int | None
    step_in_epoch: int | None
    data_position: int | None
    fell_back: bool


def _policies(save: Sequence[_Policy], keep: Sequence[_Policy], trash: str | None) -> Any:
    """A struct muster_policies, and the memory that it borrows."""
    policies = ffi.new("struct muster_policies *")
    lib.muster_policies_init(policies, ffi.sizeof("struct muster_policies"))
    memory: list[Any] = []
    for name, given in (("save", save), ("keep", keep)):
        given = listed(name, given, "policies")
        array = ffi.new(f"struct muster_{name}_policy[]", len(given))
        for at, policy in enumerate(given):
            if not type(policy).__name__.lower().startswith(name):
                raise wrong_type(f"{name} has {policy!r}; give policies named {name.capitalize()}…")
            policy._fill(array[at], memory)
        setattr(policies, name, array)
        setattr(policies, f"{name}_count", len(given))
        memory.append(array)
    memory.append(borrowed_text(policies, "trash", trash))
    return policies, memory


def _metrics(metrics: Mapping[str, float]) -> tuple[list[Any], Any]:
    """Their names, and the values, which borrow these."""
    if not isinstance(metrics, Mapping):
        raise wrong_type(f"metrics is a {type(metrics).__name__}; give a dict of numbers by name")
    names = [ffi.new("char[]", encoded("the name of a metric", name)) for name in metrics]
    values = ffi.new("struct muster_metric[]", len(names))
    for at, (name, value) in enumerate(metrics.items()):
        try:
            values[at].name, values[at].value = names[at], float(value)
        except (TypeError, ValueError):
            raise wrong_type(f"metric {name!r} is {value!r}; give a number") from None
    return names, values


def _as_json(metadata: Mapping[str, Any]) -> bytes:
    if not isinstance(metadata, Mapping):
        raise wrong_type(f"metadata is a {type(metadata).__name__}; give a dict")
    try:
        text = json.dumps(metadata, allow_nan=False)
        json.dumps(metadata, ensure_ascii=False).encode()  # fails for half a character
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong_type(f"metadata is no JSON ({error}); give a dict of plain values") from None
    if len(text) > _METADATA_BYTES_MAX:
        raise wrong(
            f"metadata is {len(text)} bytes of JSON, and at most {_METADATA_BYTES_MAX} are kept; "
            "save the rest with the state"
        )
    return text.encode()


class Manager(Member, Checkpoints):
    """Saves by policy, keeps what policies want, and counts steps from index 0 as its user does.

        with muster.Manager(state=state, save=[muster.SaveEverySteps(100)],
                            keep=[muster.KeepLatest(2)]) as manager:
            restored = manager.restore()
            for step in range(restored.step + 1 if restored else 0, 1000):
                ...
                manager.save(step, metrics={"loss": loss})

    save, keep: lists of policies; without any, saves are forced or preempted, and all are kept.
    A preempted job always saves. With an empty state, a program writes its checkpoints by itself,
    between should_save and save. fallback: all ranks take the next older one if the newest is
    damaged. trash: a folder inside the directory that deleted ones are moved to.
    save_timeout: seconds for a save that is waited for. save_fn, restore_fn: callables, as Node's
    save and restore. options: those of Node but save_every and restore_later.

    restore and save wait for the other ranks. Calls that ask the broker, such as all_steps, wait
    for its answer. All raise muster.Error, which says what to do: BrokerError, PeerError and others.
    """

    _what = "Manager"

    def __init__(
        self,
        *,
        state: TrainingState | None = None,
        save_fn: Callable[[SaveContext], object] | None = None,
        restore_fn: Callable[[RestoreContext], object] | None = None,
        save: Sequence[_Policy] = (),
        keep: Sequence[_Policy] = (),
        trash: str | None = None,
        name_prefix: str | None = None,
        name_digits: int = 0,
        fallback: bool = False,
        save_timeout: float | None = None,
        **options: Any,
    ) -> None:
        for option in options:
            if option not in _NODE_OPTIONS:
                raise wrong_type(
                    f"muster.Manager has no option {option!r}; give those of its own, or "
                    + ", ".join(sorted(_NODE_OPTIONS))
                )
        self._only_its_own = (
            save_fn is None and isinstance(state, TrainingState) and len(state) == 0
        )
        self._own: dict[str, Any] | None = None  # the record of what the program wrote, in save
        if self._only_its_own:
            state, save_fn, restore_fn = None, self._save_own, lambda context: None
        node, texts, hooks = node_options(state=state, save=save_fn, restore=restore_fn, **options)
        self._begin(hooks, state)
        self._progress: Progress | None = None
        self._owes = False  # should_save gave True, and neither save nor fail_save came since
        self._asked = -1  # the step that should_save gave True for
        self._failed: int | None = None  # the step of fail_save
        self._restart_code = options.get("restart_code") or 0
        policies, memory = _policies(save, keep, trash)
        own = ffi.new("struct muster_manager_options *")
        lib.muster_manager_options_init(own, ffi.sizeof("struct muster_manager_options"))
        memory.append(borrowed_text(own, "name_prefix", name_prefix))
        own.node, own.policies = node, policies
        own.name_digits = integer("name_digits", name_digits)
        own.fallback = flag("fallback", fallback)
        own.save_timeout_ms = milliseconds("save_timeout", save_timeout)
        box = ffi.new("muster_manager_t **")
        self._check_open(lib.muster_manager_open(own, box, self._error))
        self._opened(box)
        self._turn.manager = box[0]
        hooks.manager = box
        del texts, memory

    def restore(self, step: int | None = None) -> Restored | None:
        """Joins the job, restores and waits for all ranks. Once, before the first step.

        step: None = the newest; an older one makes those after it count no more. Returns None when
        nothing is saved yet. Raises muster.Error when there is no checkpoint of that step.
        """
        found = ffi.new("struct muster_restored *")
        wanted = lib.MUSTER_STEP_LATEST if step is None else integer("step", step, bits=62)
        status = self._status(lib.muster_manager_restore, wanted, found, ffi.sizeof(found[0]))
        node = lib.muster_manager_node(self._manager())
        if node != ffi.NULL:
            self._joined(node)
        if status == lib.MUSTER_E_NOT_FOUND and step is None:
            return None
        self._finish(status, self._error)
        return Restored(
            found.step,
            int(found.checkpoint),
            told_number(found.epoch),
            told_number(found.step_in_epoch),
            told_number(found.data_position),
            found.fell_back,
        )

    def save(
        self,
        step: int,
        *,
        force: bool = False,
        metrics: Mapping[str, float] | None = None,
        metadata: Mapping[str, Any] | None = None,
        epoch: int | None = None,
        step_in_epoch: int | None = None,
        data_position: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> bool:
        """The boundary after step `step`: saves if a policy says so, if forced, or if preempted.

        Returns whether this step is committed; False after fail_save. metadata: a JSON object.
        path: the file or directory that the program itself wrote, after should_save returned True.
        The call syncs it to the disk, and records "path" and "bytes" in the metadata. `muster
        checkpoints` and `verify` show those of the lowest rank. For an object store, give both keys
        in `metadata` instead.
        Raises Preempted; SaveError when the save failed, after which training may go on.
        """
        request = ffi.new("struct muster_save_request *")
        lib.muster_save_request_init(request, ffi.sizeof("struct muster_save_request"))
        names, values = _metrics({} if metrics is None else metrics)
        custom = ffi.NULL if metadata is None else ffi.new("char[]", _as_json(metadata))
        request.force, request.metrics = flag("force", force), values
        request.metrics_count = len(names)
        request.epoch = natural("epoch", epoch)
        request.step_in_epoch = natural("step_in_epoch", step_in_epoch)
        request.data_position = natural("data_position", data_position)
        saved, number = ffi.new("bool *"), integer("step", step, bits=62)
        if number == self._failed:
            return False
        try:
            if path is not None:
                metadata = {**(metadata or {}), **self._written(self._place(path))}
                custom = ffi.new("char[]", _as_json(metadata))
            request.custom_metadata = custom
            self._own = dict(metadata or {})
            status = self._status(lib.muster_manager_save, number, request, saved)
            if status != lib.MUSTER_E_ARGUMENT:  # which changes nothing
                self._owes = False
        finally:
            self._own = None
            self._unwatch()
        self._finish(status, self._error)
        return bool(saved[0])

    def should_save(self, step: int, *, force: bool = False) -> bool:
        """Will save(step) save? Every rank gets the same answer; with False the step is over.

        With True the save begins here: a program that saves by itself does so before it calls
        save, within ten minutes.
        force: the program decides that this step is saved, alike on all ranks.
        Raises Preempted, too: with layout "replicated" a slow rank may hear of the finished save
        before it gets to that step.
        """
        if self._progress is not None:
            self._unwatch()
        if force is not False:
            force = flag("force", force)
        number = integer("step", step, bits=62)
        if number == self._failed:
            return False
        status = _should_save(self._turn, number, force)
        if self._owes and number > self._asked and status not in _CHANGES_NOTHING:
            self._owes = False
        if not status:
            return False
        self._handle()  # a closed one is refused by C, and told here
        if status == lib.MUSTER_PY_IN_A_CALL:
            raise self._in_a_call()
        if status == lib.MUSTER_PY_SAVES:
            self._owes, self._asked = True, number
            self._watch(None)
            return True
        self._finish(lib.MUSTER_OK if status < 0 else status, self._error)
        return False

    def fail_save(self, text: str) -> None:
        """After should_save returned True: tells all ranks why the program's own save failed.

        Go on to the next step without save: this step is not committed. If the job is being
        terminated, a later step is saved. To close here says that the program has finished.
        """
        node, said = self._joined_handle("fail_save"), encoded("text", text)
        if not self._owes:
            raise misused("no save is open; call fail_save after should_save returned True")
        lib.muster_node_save_fail(node, 1, said)
        self._owes, self._failed = False, self._asked
        self._unwatch()

    def _save_own(self, context: SaveContext) -> None:
        """Of an empty state: the program writes all by itself, so close has nothing to save."""
        if self._own is None:
            raise RuntimeError(
                f"the program has ended, and wrote no checkpoint of its {context.step} steps; the "
                "job goes on from an older one"
            )
        (context.directory / "own.json").write_text(json.dumps(self._own), encoding="utf-8")

    def _place(self, path: str | os.PathLike[str]) -> pathlib.Path:
        text = os.fsdecode(encoded("path", path))
        if not self._owes:
            raise misused(f"path {text!r} is of no save; call should_save before you write it")
        place = pathlib.Path(os.path.abspath(text))
        if not text or not os.path.lexists(place):
            raise wrong(
                f"path {text!r} is not there; write it before you call save. If it is in an object "
                'store, give "path" and "bytes" as metadata instead'
            )
        return place

    def _written(self, place: pathlib.Path) -> dict[str, Any]:
        """Syncs what the program wrote, and returns its path and size as metadata. If that fails,
        so does the save that is open.
        """
        try:
            os.stat(place)
            return written(place)
        except OSError as error:
            said = f"{place} could not be synced to the disk: {error}"
            self.fail_save(said)
            raise SaveError(
                lib.MUSTER_E_SAVE, f"{said}; earlier checkpoints are untouched"
            ) from error

    def close(self, code: int = 0) -> None:
        """As Node.close. If the program fails between should_save and save, that step is not
        committed: what it wrote may be torn. If it closes there by itself, the state is saved.
        A program whose state is empty saves nothing by that, so it counts as failed, and
        UsageError is raised.
        """
        if self._box is None:
            return
        code = integer("code", code)
        forgot = self._owes and self.is_open and (code != 0 or self._only_its_own)
        if forgot:
            self.fail_save("the program closed its manager before it called save")
        self._unwatch()
        super().close(code or int(forgot))
        if forgot and code == 0:
            raise misused(
                f"should_save gave True for step {self._asked}, and the program closed before save; "
                "call save, or fail_save if it could not write"
            )

    def _watch(self, path: pathlib.Path | None, patience: float | None = PATIENCE) -> None:
        """What the program writes until save(), and where, if that is known."""
        self._unwatch()
        self._progress = Progress(self._c, path, patience)

    def _unwatch(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.stop()

    def wait_until_finished(self, timeout: float | None = None) -> None:
        """Waits for all saves under way; raises the oldest failure not told yet, or WaitTimeout
        after `timeout` seconds.
        """
        self._ask(lib.muster_manager_wait_until_finished, milliseconds("timeout", timeout, -1))

    def check_for_errors(self) -> None:
        """Raises if a save or a deletion failed since this was asked last. Never waits."""
        self._ask(lib.muster_manager_check_for_errors)

    @property
    def is_saving(self) -> bool:
        """Is a save under way?"""
        return bool(lib.muster_manager_is_saving_in_progress(self._manager()))

    def reached_preemption(self, step: int) -> bool:
        """Is the job being terminated, and `step` the step saved for that, or a later one?"""
        number = integer("step", step, bits=62)
        return bool(lib.muster_manager_reached_preemption(self._manager(), number))

    def delete(self, step: int) -> None:
        """Deletes one checkpoint, whatever the policies say; one rank's call is enough."""
        self._ask(lib.muster_manager_delete, integer("step", step, bits=62))

    def _manager(self) -> Any:
        self._handle()
        return self._box[0]

    def _close_c(self, box: Any, code: int, error: Any) -> int:
        return int(lib.muster_manager_close(box, code, error))


__all__ = [
    "CheckpointInfo",
    "KeepBest",
    "KeepEvery",
    "KeepEverySteps",
    "KeepLast",
    "KeepLatest",
    "KeepSteps",
    "Manager",
    "Restored",
    "SaveEvery",
    "SaveEverySteps",
    "SaveFirst",
    "SaveShare",
    "SaveSteps",
]
