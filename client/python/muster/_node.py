"""Node: this process as one rank of a job."""

from __future__ import annotations

import atexit
import dataclasses
import os
import pathlib
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from . import _hooks
from ._errors import Error, Preempted, check, error_of, milliseconds, new_error
from ._native import ffi, lib
from ._state import TrainingState

_LAYOUTS = {"replicated": lib.MUSTER_LAYOUT_REPLICATED, "sharded": lib.MUSTER_LAYOUT_SHARDED}
_ROLES = {
    "chief": lib.MUSTER_ROLE_CHIEF,
    "worker": lib.MUSTER_ROLE_WORKER,
    "ps": lib.MUSTER_ROLE_PS,
    "evaluator": lib.MUSTER_ROLE_EVALUATOR,
}
_NOTICES = {
    "preempt": lib.MUSTER_NOTICE_PREEMPT,
    "terminate": lib.MUSTER_NOTICE_TERMINATE,
    "stop": lib.MUSTER_NOTICE_STOP,
    "reboot": lib.MUSTER_NOTICE_REBOOT,
    "time_limit": lib.MUSTER_NOTICE_TIME_LIMIT,
    "signal": lib.MUSTER_NOTICE_SIGNAL,
    "user": lib.MUSTER_NOTICE_USER,
}
_SIGNALS_MAX = 8


@dataclasses.dataclass(frozen=True)
class SaveContext:
    """What a save callable is told. directory: empty, this rank's own; write only inside it.

    step: so many steps are done.
    """

    directory: pathlib.Path
    step: int
    generation: int
    round: int
    rank: int
    world_size: int


@dataclasses.dataclass(frozen=True)
class RestoreContext:
    """What a restore callable is told. directory: the files that the save callable wrote."""

    directory: pathlib.Path
    step: int
    rank: int
    world_size: int


@dataclasses.dataclass(frozen=True)
class Position:
    """Where training stands; None = not told."""

    epoch: int | None = None
    step_in_epoch: int | None = None
    data_position: int | None = None


def _path(text: Any) -> pathlib.Path:
    return pathlib.Path(os.fsdecode(ffi.string(text)))


def _save_context(context: Any) -> SaveContext:
    return SaveContext(
        _path(context.directory),
        context.step,
        context.generation,
        context.round,
        context.rank,
        context.world_size,
    )


def _restore_context(context: Any) -> RestoreContext:
    return RestoreContext(_path(context.directory), context.step, context.rank, context.world_size)


def _choice(name: str, value: str | None, choices: dict[str, int]) -> int:
    if value is None:
        return 0
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; give one of {', '.join(map(repr, choices))}")
    return choices[value]


def _close_at_exit(reference: weakref.ref[Node]) -> None:
    """Before the interpreter ends, and its threads with it: what is open is closed."""
    node = reference()
    if node is None or not node.is_open:
        return
    failure = getattr(sys, "last_value", None)
    try:
        node._leave(failure)
    except (Error, Preempted):
        pass  # the process ends as it was going to


class Node:
    """This process as one rank of a job: joins, restores, steps, saves with all ranks, leaves.

    Opening blocks until the broker has let it in (connect_timeout, open_timeout), then for the
    restore (join_timeout). Use it as a context manager: its end leaves the job, and an exception
    is told to the other ranks. One thread at a time, the training thread, calls it. notify, fail
    and the properties may be used by any.

    What is saved is one of
    - state: a TrainingState; muster writes and restores it;
    - save, restore: callables that get a SaveContext or RestoreContext, on the training thread.
      An exception of theirs is raised again by the call that saves or restores. One in `save` is
      final: the other ranks and `muster why` are told its text.

    layout: "replicated" (every rank has the whole state, and one rank's makes the checkpoint) or
      "sharded" (each rank has its own part). A state that differs between ranks, such as a random
      generator, needs "sharded".
    job, rank, world_size, broker, directory: None = from the environment, muster-environment(7).
    signals: numbers that are notices; None = SIGTERM, () = none.
    sources: more sources of notices, as MUSTER_NOTICE_SOURCES.
    grace: seconds from a notice to the end, if the notice does not tell an earlier one; None = as
      it says.
    save_every: all ranks save at each multiple of so many steps.
    save_on_notice: also save at once when a notice leaves time to train on.
    save_behind: with a state, training goes on while a copy of it is written.
    offline_ok: alone (world size 1) when no broker answers.
    fallback: all ranks take an older checkpoint if the newest is damaged.
    restore_later: opening restores nothing; call restore() before the first step.
    restart_code: of Preempted; None = MUSTER_RESTART_CODE, else 42.
    Other times are seconds; None = the default.

    Raises BrokerError, RestoreError, PeerError and other muster.Error with what to do; Preempted
    when the job is being terminated already.
    """

    def __init__(
        self,
        *,
        state: TrainingState | None = None,
        save: Callable[[SaveContext], object] | None = None,
        restore: Callable[[RestoreContext], object] | None = None,
        layout: str = "replicated",
        job: str | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        broker: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        role: str | None = None,
        signals: Sequence[int] | None = None,
        sources: str | None = None,
        grace: float | None = None,
        save_every: int | None = None,
        save_on_notice: bool = False,
        save_behind: bool = False,
        offline_ok: bool = False,
        fallback: bool = False,
        restore_later: bool = False,
        restart_code: int | None = None,
        connect_timeout: float | None = None,
        open_timeout: float | None = None,
        join_timeout: float | None = None,
        abort_timeout: float | None = None,
    ) -> None:
        self._pid = os.getpid()
        self._box: Any = None
        self._state = state  # its memory is borrowed until close
        if (save is None) != (restore is None):
            raise ValueError("give save and restore together: one writes what the other reads")
        options = ffi.new("struct muster_node_options *")
        lib.muster_node_options_init(options, ffi.sizeof("struct muster_node_options"))
        texts = [
            self._text(options, "job", job),
            self._text(options, "broker", broker),
            self._text(options, "checkpoint_dir", directory),
            self._text(options.termination, "sources", sources),
        ]
        options.rank = -1 if rank is None else rank
        options.world_size = world_size or 0
        options.role = _choice("role", role, _ROLES)
        options.layout = _choice("layout", layout, _LAYOUTS)
        options.state = state._box[0] if state is not None else ffi.NULL
        options.connect_timeout_ms = milliseconds("connect_timeout", connect_timeout)
        options.open_timeout_ms = milliseconds("open_timeout", open_timeout)
        options.join_timeout_ms = milliseconds("join_timeout", join_timeout)
        options.abort_timeout_ms = milliseconds("abort_timeout", abort_timeout)
        options.save_every_steps = save_every or 0
        options.offline_ok = offline_ok
        options.restore_fallback = fallback
        options.restore_later = restore_later
        options.save_behind = save_behind
        self._set_termination(options.termination, signals, grace, restart_code, save_on_notice)
        self._hooks = _hooks.Hooks(
            save and (lambda context: save(_save_context(context))),
            restore and (lambda context: restore(_restore_context(context))),
        )
        if save is not None:
            options.termination.save_fn = lib.muster_py_save
            options.termination.restore_fn = lib.muster_py_restore
        options.interrupted_fn = lib.muster_py_interrupted
        options.arg = self._hooks.handle
        self._open(options, ffi.new("muster_node_t **"))
        del texts

    @staticmethod
    def _text(options: Any, name: str, value: str | os.PathLike[str] | None) -> Any:
        memory = ffi.NULL if value is None else ffi.new("char[]", os.fsencode(value))
        setattr(options, name, memory)
        return memory  # C borrows it for open

    @staticmethod
    def _set_termination(
        termination: Any,
        signals: Sequence[int] | None,
        grace: float | None,
        restart_code: int | None,
        save_on_notice: bool,
    ) -> None:
        termination.on_preempted = lib.MUSTER_PREEMPTED_RETURN
        termination.grace_period_ms = milliseconds("grace", grace, -1)
        termination.restart_code = restart_code or 0
        termination.save_on_notice = save_on_notice
        if signals is None:
            return
        if len(signals) > _SIGNALS_MAX:
            raise ValueError(f"{len(signals)} signals are given; give at most {_SIGNALS_MAX}")
        for at, number in enumerate(signals or (-1,)):
            termination.signals[at] = number

    def _open(self, options: Any, box: Any) -> None:
        self._restart_code = options.termination.restart_code or 0
        error = new_error()
        status = lib.muster_node_open(options, box, error)
        self._error = new_error()
        if status == lib.MUSTER_OK:
            self._box = box
            self._c = self._hooks.node = box[0]
            self._restart_code = lib.muster_node_restart_code(self._c)
            self._at_exit = weakref.ref(self)
            atexit.register(_close_at_exit, self._at_exit)
            try:
                _hooks.raise_pending(self._hooks, None)
            except BaseException as raised:
                self._leave(raised)
                raise
            return
        self._finish(status, error)

    def restore(self) -> None:
        """With restore_later: restores the checkpoint. Waits for the other ranks (join_timeout)."""
        self._finish(lib.muster_node_restore(self._handle(), self._error), self._error)

    # --- steps ------------------------------------------------------------------------------

    def step(self) -> None:
        """Behind each step of training: counts it, and is the boundary before the next one.

        Costs about a microsecond while nothing happens. Saves with all ranks where they agreed on
        it. Raises Preempted once the job's termination is settled: leave the loop. Raises PeerError
        when another rank failed, SaveError and others; an exception of `save` comes out of here.
        """
        status = lib.muster_node_save_if_preempted(self._handle(), ffi.NULL, self._error)
        if status or self._hooks.raised is not None:
            self._finish(status, self._error)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block that counts as one step; instead of step(). An exception in it is told to the
        other ranks.
        """
        self._finish(lib.muster_node_scope_enter(self._handle(), self._error), self._error)
        try:
            yield
        except BaseException as raised:
            self.fail(_hooks.text_of(raised))
            lib.muster_node_scope_leave(self._handle(), 1, ffi.NULL)
            raise
        self._finish(lib.muster_node_scope_leave(self._handle(), 0, self._error), self._error)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """No save happens inside this block. It counts no step; the other ranks wait meanwhile."""
        lib.muster_node_hold(self._handle())
        try:
            yield
        finally:
            lib.muster_node_release(self._handle())

    @property
    def steps_done(self) -> int:
        """Steps done since the job's start, over all restarts."""
        return int(lib.muster_node_total_run_calls(self._handle()))

    @property
    def resumed_step(self) -> int:
        """The step that this process resumed at, 0 = from the start."""
        return int(lib.muster_node_resumed_step(self._handle()))

    def reached_preemption(self, step: int) -> bool:
        """Would the job save at user step index `step`? A local read."""
        return bool(lib.muster_node_reached_preemption(self._handle(), step))

    # --- saves ------------------------------------------------------------------------------

    @property
    def is_saving(self) -> bool:
        """Has this rank taken part in a save that is neither committed nor aborted yet?"""
        return bool(lib.muster_node_is_saving_in_progress(self._handle()))

    def wait_until_saved(self, timeout: float) -> None:
        """Waits until no save is under way, at most `timeout` seconds; raises the oldest failure
        not told yet.

        Raises WaitTimeout when one is still under way.
        """
        self._finish(
            lib.muster_node_wait_until_finished(
                self._handle(), milliseconds("timeout", timeout), self._error
            ),
            self._error,
        )

    def save_progress(self, written_bytes: int) -> None:
        """For a long `save`: so many bytes are written. A save that tells nothing is given up after
        60 s or more.
        """
        lib.muster_node_save_progress(self._handle(), written_bytes)

    def set_position(
        self,
        epoch: int | None = None,
        step_in_epoch: int | None = None,
        data_position: int | None = None,
    ) -> None:
        """Tells where training stands, for the next checkpoint's record."""
        lib.muster_node_set_position(
            self._handle(),
            *(-1 if value is None else value for value in (epoch, step_in_epoch, data_position)),
        )

    @property
    def position(self) -> Position:
        """Where training stood in the restored checkpoint."""
        values = [ffi.new("int64_t *") for _ in range(3)]
        lib.muster_node_position(self._handle(), *values)
        return Position(*(None if value[0] < 0 else value[0] for value in values))

    # --- who --------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        return int(lib.muster_node_rank(self._handle()))

    @property
    def world_size(self) -> int:
        return int(lib.muster_node_world_size(self._handle()))

    @property
    def generation(self) -> int:
        """The number of this launch, 0 without a broker."""
        return int(lib.muster_node_generation(self._handle()))

    @property
    def restart_code(self) -> int:
        return int(self._restart_code)

    # --- telling ----------------------------------------------------------------------------

    def notify(
        self, kind: str = "user", *, left: float | None = None, text: str | None = None
    ) -> None:
        """Tells that this process will be ended in `left` seconds (None = not known). Any thread;
        does not wait.
        """
        status = lib.muster_node_notify(
            self._handle(),
            _choice("kind", kind, _NOTICES),
            milliseconds("left", left, -1),
            ffi.NULL if text is None else text.encode(),
        )
        check(status, new_error())

    def fail(self, text: str, code: int = 1) -> None:
        """This process failed: all ranks are told the text, and later steps raise StepError. Any
        thread.
        """
        check(lib.muster_node_fail(self._handle(), code, text.encode()), new_error())

    # --- leaving ----------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._box is not None and self._pid == os.getpid()

    def close(self, code: int = 0) -> None:
        """Leaves the job; blocks for what this rank still owes, such as an open save. May be called
        again.

        code: the process's exit code to be, 0 = finished. Raises Preempted when the job is being
        terminated.
        """
        if self._box is None:
            return
        box, self._box = self._box, None
        self._c = ffi.NULL
        if self._pid == os.getpid():
            atexit.unregister(self._at_exit)
        error = new_error()
        try:
            self._finish(lib.muster_node_close(box, code, error), error)
        finally:
            self._hooks.node = ffi.NULL

    def __enter__(self) -> Node:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if value is None:
            self.close()
        elif self._box is not None and self._pid == os.getpid():
            self._leave_with(value)

    def __del__(self) -> None:
        if getattr(self, "_box", None) is None or self._pid != os.getpid():
            return
        warnings.warn(
            f"{self!r} was not closed; use it as a context manager", ResourceWarning, source=self
        )
        try:
            self.close()
        except (Error, Preempted):
            pass

    def __repr__(self) -> str:
        if not self.is_open:
            return "<muster.Node closed>"
        return f"<muster.Node rank {self.rank} of {self.world_size}>"

    def _handle(self) -> Any:
        if self._box is None:
            raise ValueError("this muster.Node is closed; open another")
        return self._c

    def _leave_with(self, value: BaseException) -> None:
        """Leaves while an exception is on its way, which goes on in any case."""
        try:
            self._leave(value)
        except Preempted:
            pass
        except Error as error:
            if hasattr(value, "add_note"):
                value.add_note(f"muster: while leaving the job: {error}")

    def _leave(self, value: BaseException | None) -> None:
        code = _hooks.exit_code_of(value)
        if code != 0 and value is not None:
            lib.muster_node_fail(self._c, code, _hooks.text_of(value).encode())
        self.close(code)

    def _finish(self, status: int, error: Any) -> None:
        """Raises what a status means, or what a callback raised."""
        if status == lib.MUSTER_OK:
            return _hooks.raise_pending(self._hooks, None)
        if status == lib.MUSTER_PREEMPTED:
            raised: BaseException = Preempted(
                self._restart_code or lib.muster_status_exit_code(status),
                ffi.string(error.text).decode(),
            )
        else:
            raised = error_of(status, error)
        _hooks.raise_pending(self._hooks, raised)
        raise raised
