"""Node: this process as one rank of a job."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _hooks
from ._errors import integer, milliseconds, natural
from ._member import Member, RestoreContext, SaveContext, node_options
from ._native import ffi, lib
from ._state import TrainingState

_step = lib.muster_py_step  # looked up once: it is called after each step


@dataclasses.dataclass(frozen=True)
class Position:
    """Where training stands; None = not told."""

    epoch: int | None = None
    step_in_epoch: int | None = None
    data_position: int | None = None


class Node(Member):
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
    grace: seconds from a notice to the end, unless the notice names an earlier end; None = as the
      notice says.
    save_every: all ranks save at each multiple of this number of steps, but not after the job's
      last step: nothing is left to resume then. Save the trained model after the loop.
    save_on_notice: also save at once when a notice leaves time to train on.
    save_behind: with a state, training goes on while a copy of it is written.
    offline_ok: with world size 1, go on without a broker when none answers.
    fallback: all ranks take an older checkpoint if the newest is damaged.
    restore_later: opening restores nothing; call restore() before the first step.
    restore_any_world_size: `restore` reads what any number of ranks saved; without it a checkpoint
      of another number is refused.
    restart_code: of Preempted; None = MUSTER_RESTART_CODE, else 42.
    Other times are seconds; None = the default.

    Raises BrokerError, RestoreError, PeerError and other muster.Error with what to do; Preempted
    when the job is being terminated already.
    """

    _what = "Node"

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
        restore_any_world_size: bool = False,
        restart_code: int | None = None,
        connect_timeout: float | None = None,
        open_timeout: float | None = None,
        join_timeout: float | None = None,
        abort_timeout: float | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        options, texts, hooks = node_options(**given)
        self._begin(hooks, state)
        self._open(options, ffi.new("muster_node_t **"))
        del texts

    def _open(self, options: Any, box: Any) -> None:
        self._restart_code = options.termination.restart_code or 0
        status = lib.muster_node_open(options, box, self._error)
        if status != lib.MUSTER_OK:
            self._check_open(status)
        self._opened(box)
        self._joined(box[0])
        try:
            _hooks.raise_pending(self._hooks, None)
        except BaseException as raised:
            self._leave(raised)
            raise

    def _close_c(self, box: Any, code: int, error: Any) -> int:
        return int(lib.muster_node_close(box, code, error))

    def restore(self) -> None:
        """With restore_later: restores the checkpoint. Waits for the other ranks (join_timeout).

        Raises RestoreError, PeerError, BrokerError. If the callable `restore` raises, so does this
        call.
        """
        self._call(lib.muster_node_restore)

    # --- steps ------------------------------------------------------------------------------

    def step(self) -> None:
        """Call it after each step of training. It counts the step, and saves before the next one
        where all ranks agreed to.

        Costs less than a microsecond while nothing happens. Raises Preempted once the job's
        termination is settled: leave the loop. Raises PeerError when another rank failed, SaveError
        and others; an exception of `save` comes out of here.
        """
        status = _step(self._turn)
        if status:
            self._handle()  # a closed one is refused by C, and told here
            if status == lib.MUSTER_PY_IN_A_CALL:
                raise self._in_a_call()
            self._finish(lib.MUSTER_OK if status < 0 else status, self._error)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block that counts as one step; instead of step(). An exception in it is told to the
        other ranks.
        """
        self._call(lib.muster_node_scope_enter)
        try:
            yield
        except BaseException as raised:
            if self.is_open:
                lib.muster_node_fail(self._c, 1, _hooks.text_of(raised))
                self._alone(lib.muster_node_scope_leave, self._c, 1, ffi.NULL)
            raise
        self._call(lib.muster_node_scope_leave, 0)

    def reached_preemption(self, step: int) -> bool:
        """Would the job save at user step index `step`? A local read."""
        return bool(
            lib.muster_node_reached_preemption(self._handle(), integer("step", step, bits=62))
        )

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
        self._call(lib.muster_node_wait_until_finished, milliseconds("timeout", timeout))

    def save_progress(self, written_bytes: int) -> None:
        """For a long `save` that writes outside its directory: tells how many bytes are written so
        far. A save of which nothing is heard for ten minutes is given up.
        """
        written = natural("written_bytes", written_bytes, 0, bits=63)
        lib.muster_node_save_progress(self._handle(), written)

    def set_position(
        self,
        epoch: int | None = None,
        step_in_epoch: int | None = None,
        data_position: int | None = None,
    ) -> None:
        """Tells where training stands, for the next checkpoint's record."""
        lib.muster_node_set_position(
            self._handle(),
            natural("epoch", epoch),
            natural("step_in_epoch", step_in_epoch),
            natural("data_position", data_position),
        )

    @property
    def position(self) -> Position:
        """Where training stood in the restored checkpoint."""
        values = [ffi.new("int64_t *") for _ in range(3)]
        lib.muster_node_position(self._handle(), *values)
        return Position(*(None if value[0] < 0 else value[0] for value in values))
