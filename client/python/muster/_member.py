"""What Node and Manager share: options, callables, telling and leaving."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import pathlib
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from . import _hooks
from ._closing import Turns
from ._errors import (
    Error,
    Preempted,
    check,
    encoded,
    error_of,
    flag,
    integer,
    listed,
    milliseconds,
    misused,
    new_error,
    wrong,
    wrong_type,
)
from ._hooks import Hooks
from ._log import NOTICES, Event, Events, log, notice_name
from ._native import ffi, lib
from ._signals import put_back_at_once
from ._state import TrainingState

_LAYOUTS = {"replicated": lib.MUSTER_LAYOUT_REPLICATED, "sharded": lib.MUSTER_LAYOUT_SHARDED}
_ROLES = {
    "chief": lib.MUSTER_ROLE_CHIEF,
    "worker": lib.MUSTER_ROLE_WORKER,
    "ps": lib.MUSTER_ROLE_PS,
    "evaluator": lib.MUSTER_ROLE_EVALUATOR,
}
_SIGNALS_MAX = 8
_NUMBERS = (  # that stay after close
    lib.muster_node_rank,
    lib.muster_node_world_size,
    lib.muster_node_generation,
    lib.muster_node_total_run_calls,
    lib.muster_node_resumed_step,
)
# Nobody can catch these, or the program itself caused them and cannot go on.
_NO_NOTICES = {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
}


@dataclasses.dataclass(frozen=True)
class Announced:
    """The announced end of a process of the job, of rank `rank`.

    left: seconds until then. save_in: seconds until the save for it begins, as planned now. None =
    not known.
    """

    kind: str
    rank: int
    left: float | None
    save_in: float | None


@dataclasses.dataclass(frozen=True)
class SaveContext:
    """What a save callable is told. directory: empty, this rank's own; write only inside it.

    step: the agreed save step: this many steps are done.
    """

    directory: pathlib.Path
    step: int
    generation: int
    round: int
    rank: int
    world_size: int


@dataclasses.dataclass(frozen=True)
class RestoreContext:
    """What a restore callable is told. directory: the files that the save callable wrote; None if
    fewer ranks saved than this rank's number asks for (restore_any_world_size).

    checkpoint_directory: the whole checkpoint, with the directories of all its ranks.
    saved_world_size: as many ranks saved it.
    """

    directory: pathlib.Path | None
    step: int
    rank: int
    world_size: int
    checkpoint_directory: pathlib.Path
    saved_world_size: int


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
    return RestoreContext(
        None if context.directory == ffi.NULL else _path(context.directory),
        context.step,
        context.rank,
        context.world_size,
        _path(context.checkpoint_directory),
        context.saved_world_size,
    )


def _choice(name: str, value: str | None, choices: dict[str, int]) -> int:
    if value is None:
        return 0
    if not isinstance(value, str) or value not in choices:
        raise wrong(f"{name} is {value!r}; give one of {', '.join(map(repr, choices))}")
    return choices[value]


def borrowed_text(
    options: Any, name: str, value: str | os.PathLike[str] | None, told: str | None = None
) -> Any:
    memory = ffi.NULL if value is None else ffi.new("char[]", encoded(told or name, value))
    setattr(options, name, memory)
    return memory  # C borrows it for open


def _signal(value: Any) -> int:
    number = integer("signals", value)
    if number not in signal.valid_signals() - _NO_NOTICES:
        raise wrong(f"signals has {value!r}, which cannot be a notice; give signal.SIGTERM or such")
    return number


def _set_termination(
    termination: Any,
    signals: Sequence[int] | None,
    grace: float | None,
    restart_code: int | None,
    save_on_notice: bool,
) -> None:
    termination.on_preempted = lib.MUSTER_PREEMPTED_RETURN
    termination.grace_period_ms = milliseconds("grace", grace, -1)
    termination.restart_code = integer("restart_code", restart_code)
    termination.save_on_notice = flag("save_on_notice", save_on_notice)
    if signals is None:
        return
    numbers = listed("signals", signals, "the numbers of signals, () = none")
    if len(numbers) > _SIGNALS_MAX:
        raise wrong(f"{len(numbers)} signals are given; give at most {_SIGNALS_MAX}")
    if not numbers:
        termination.signals[0] = -1  # none
    for at, number in enumerate(numbers):
        termination.signals[at] = _signal(number)


def node_options(
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
) -> tuple[Any, list[Any], Hooks]:
    """A struct muster_node_options, the memory that it borrows for open, and its callables."""
    if state is not None and not isinstance(state, TrainingState):
        raise wrong_type(
            f"state is a {type(state).__name__}; give muster.TrainingState(...) of its arrays"
        )
    if (save is None) != (restore is None):
        raise wrong("give save and restore together: one writes what the other reads")
    options = ffi.new("struct muster_node_options *")
    lib.muster_node_options_init(options, ffi.sizeof("struct muster_node_options"))
    texts = [
        borrowed_text(options, "job", job),
        borrowed_text(options, "broker", broker),
        borrowed_text(options, "checkpoint_dir", directory, "directory"),
        borrowed_text(options.termination, "sources", sources),
    ]
    options.rank = integer("rank", rank, -1)
    options.world_size = integer("world_size", world_size)
    options.role = _choice("role", role, _ROLES)
    options.layout = _choice("layout", layout, _LAYOUTS)
    options.state = state._box[0] if state is not None else ffi.NULL
    options.connect_timeout_ms = milliseconds("connect_timeout", connect_timeout)
    options.open_timeout_ms = milliseconds("open_timeout", open_timeout)
    options.join_timeout_ms = milliseconds("join_timeout", join_timeout)
    options.abort_timeout_ms = milliseconds("abort_timeout", abort_timeout)
    options.save_every_steps = integer("save_every", save_every, bits=62)
    options.offline_ok = flag("offline_ok", offline_ok)
    options.restore_fallback = flag("fallback", fallback)
    options.restore_later = flag("restore_later", restore_later)
    options.restore_any_world_size = flag("restore_any_world_size", restore_any_world_size)
    options.save_behind = flag("save_behind", save_behind)
    _set_termination(options.termination, signals, grace, restart_code, save_on_notice)
    hooks = Hooks(
        save and (lambda context: save(_save_context(context))),
        restore and (lambda context: restore(_restore_context(context))),
        state.check if state is not None else None,
    )
    if state is not None:
        options.state_check_fn = lib.muster_py_state_check
    if save is not None:
        options.termination.save_fn = lib.muster_py_save
        options.termination.restore_fn = lib.muster_py_restore
    put_back_at_once()
    hooks.events = Events(options)
    options.interrupted_fn = lib.muster_py_interrupted
    options.arg = hooks.handle
    return options, texts, hooks


def _close_at_exit(reference: weakref.ref[Member]) -> None:
    """Before the interpreter ends, and its threads with it: what is open is closed."""
    node = reference()
    if node is not None and node.is_open:
        node._abandon(getattr(sys, "last_value", None))


Self = TypeVar("Self", bound="Member")


class Member(Turns):
    """A rank of a job: who it is, what it tells, and how it leaves."""

    _what = "Member"
    _hooks: Hooks
    _restart_code: int

    def _begin(self, hooks: Hooks, state: TrainingState | None) -> None:
        self._begin_turns()
        self._pid = os.getpid()
        self._box: Any = None
        self._c: Any = ffi.NULL  # the node
        self._state = state  # its memory is borrowed until close
        self._last: dict[Any, int] = {}  # what the properties gave before close
        self._hooks = hooks
        self._error = self._turn.error = new_error()
        hooks.turn = self._turn
        self._preempted = False

    def _opened(self, box: Any) -> None:
        """From here on the interpreter closes it before its own end."""
        self._box = box
        self._at_exit = functools.partial(_close_at_exit, weakref.ref(self))
        atexit.register(self._at_exit)

    def _end_events(self) -> None:
        if self._hooks.events is not None:
            self._hooks.events.end()

    def _check_open(self, status: int) -> None:
        """Checks the status of open; a node that was not opened logs nothing more."""
        try:
            self._finish(status, self._error)
        except BaseException:
            self._end_events()
            raise

    def _joined(self, node: Any) -> None:
        self._c = self._turn.node = self._hooks.node = node
        self._restart_code = lib.muster_node_restart_code(node)

    def _close_c(self, box: Any, code: int, error: Any) -> int:
        raise NotImplementedError

    @staticmethod
    def _suspects(value: BaseException) -> bool:
        """Does this exception say that another rank went away in a collective?"""
        torch = sys.modules.get("torch.distributed")
        if torch is None and "jax" not in sys.modules:
            return False
        if isinstance(value, getattr(torch, "DistError", ())):
            return True
        # PyTorch's are RuntimeErrors. JAX raises a ValueError: "UNKNOWN: Gloo all-reduce failed".
        return isinstance(value, (RuntimeError, ValueError)) and any(
            name in str(value).lower() for name in ("gloo", "nccl", "peer")
        )

    # --- who --------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """This process's number in the job, from 0 on; -1 before a Manager's restore()."""
        return self._number(lib.muster_node_rank)

    @property
    def world_size(self) -> int:
        """How many ranks this launch has; 0 before a Manager's restore()."""
        return self._number(lib.muster_node_world_size)

    @property
    def generation(self) -> int:
        """The number of this launch, 0 without a broker."""
        return self._number(lib.muster_node_generation)

    @property
    def restart_code(self) -> int:
        """The exit code of Preempted, by which a launcher knows that it starts the job again."""
        return int(self._restart_code)

    @property
    def steps_done(self) -> int:
        """Steps done since the job's start, over all restarts."""
        return self._number(lib.muster_node_total_run_calls)

    @property
    def resumed_step(self) -> int:
        """The step that this process resumed at, 0 = from the start."""
        return self._number(lib.muster_node_resumed_step)

    def _number(self, call: Any) -> int:
        """As it was at its end, once this is closed: a program may save its result after that."""
        if self._box is None and call in self._last:
            return self._last[call]
        return int(call(self._handle()))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """No save happens inside this block. It counts no step; the other ranks wait meanwhile."""
        lib.muster_node_hold(self._handle())
        try:
            yield
        finally:
            lib.muster_node_release(self._handle())

    # --- telling ----------------------------------------------------------------------------

    def notify(
        self, kind: str = "user", *, left: float | None = None, text: str | None = None
    ) -> None:
        """Tells that this process will be ended in `left` seconds (None = not known). Any thread;
        does not wait. Raises UsageError before the job is joined.
        """
        status = lib.muster_node_notify(
            self._joined_handle("notify"),
            _choice("kind", kind, NOTICES),
            milliseconds("left", left, -1),
            ffi.NULL if text is None else encoded("text", text),
        )
        check(status, new_error())

    @property
    def announced(self) -> Announced | None:
        """The end of a process of this job that comes first; None = none is announced. A local
        read, at most a second old.
        """
        told = ffi.new("struct muster_announced *")
        if not lib.muster_node_announced(self._handle(), told, ffi.sizeof(told[0])):
            return None
        left, save_in = (None if ms < 0 else ms / 1000 for ms in (told.left_ms, told.save_ms))
        return Announced(notice_name(told.kind), told.rank, left, save_in)

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """What happens at this node, the oldest first: errors of other ranks, notices, commits.

        Waits `timeout` seconds for each (None = as long as the node is open), and then ends. Closing
        the node ends it once all is read. Any thread, as one of the program's own that watches the
        training. Each event goes to one reader. The newest 1024 of each kind are kept for it;
        Event.lost counts the others.
        """
        events = self._hooks.events  # None: it only reads checkpoints
        return iter(()) if events is None else events.read(timeout)

    def fail(
        self, text: str, code: int = 1, *, suspect: bool = False, wait: float | None = None
    ) -> None:
        """This process failed: all ranks are told the text, and later steps raise StepError. Any
        thread.

        suspect: another rank may be the cause, as when a collective broke. A rank that failed has
        5 s to tell so; then the broker asks all others. The call waits `wait` seconds at most
        (None = 10). It raises PeerError with the rank that is gone, else StepError. Call it from
        the training thread.
        """
        node, number = self._joined_handle("fail"), integer("code", code)
        if suspect:
            ms = milliseconds("wait", wait)
            return self._call(lib.muster_node_fail_suspecting, number, encoded("text", text), ms)
        check(lib.muster_node_fail(node, number, encoded("text", text)), new_error())

    # --- leaving ----------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Is it neither closed, nor a forked parent's?"""
        return self._box is not None and self._pid == os.getpid()

    def close(self, code: int = 0) -> None:
        """Leaves the job; blocks for what this rank still owes, such as an open save. May be called
        again.

        code: the process's exit code to be, 0 = finished. Raises Preempted when the job is being
        terminated.
        """
        if self._box is None:
            return
        code = integer("code", code)
        if self._pid == os.getpid():
            self._take_turn()
        if self._pid == os.getpid() and self._c != ffi.NULL:
            self._last = {call: int(call(self._c)) for call in _NUMBERS}
        box, self._box = self._box, None
        self._c = self._turn.node = self._turn.manager = ffi.NULL
        if self._pid == os.getpid():
            atexit.unregister(self._at_exit)
        error = new_error()
        try:
            self._finish(self._close_c(box, code, error), error)
        finally:
            self._hooks.node = ffi.NULL
            self._end_events()

    def __enter__(self: Self) -> Self:
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
        self._abandon(None)

    def _abandon(self, failure: BaseException | None) -> None:
        """Leaves the job for a program that did not. It may end with any code, for sys.exit leaves
        no trace: so this rank has failed, and not finished, unless it was preempted.
        """
        text = f"the program never closed {self!r}; use it in a with block, or call close()"
        try:
            if failure is None and not self._preempted:
                log.error("%s: this rank counts as failed", text)
                if self._c != ffi.NULL:
                    lib.muster_node_fail(self._c, 1, text.encode())
                self.close(1)
            else:
                self._leave(failure)
        except (Error, Preempted):
            pass  # the process ends as it was going to
        warnings.warn(text, ResourceWarning, source=self)

    def __repr__(self) -> str:
        if not self.is_open:
            return f"<muster.{self._what} closed>"
        return f"<muster.{self._what} rank {self.rank} of {self.world_size}>"

    def _handle(self) -> Any:
        if self._box is None:
            raise wrong(f"this muster.{self._what} is closed; open another")
        return self._c

    def _joined_handle(self, call: str) -> Any:
        node = self._handle()
        if node == ffi.NULL:
            raise misused(f"{call} needs a rank of the job; call restore() before it, which joins")
        return node

    def _call(self, call: Any, *arguments: Any) -> None:
        """A call of the node, alone; the error is its last argument."""
        self._finish(self._alone(call, self._handle(), *arguments, self._error), self._error)

    def _leave_with(self, value: BaseException) -> None:
        """Leaves while an exception is on its way, which goes on in any case."""
        try:
            self._leave(value)
        except Preempted:
            pass
        except Error as error:
            _hooks.add_note(value, f"muster: while leaving the job: {error}")

    def _leave(self, value: BaseException | None) -> None:
        code = _hooks.exit_code_of(value)
        self._hooks.hurries = isinstance(value, KeyboardInterrupt)
        if code != 0 and value is not None and self._c != ffi.NULL:
            text = _hooks.text_of(value)
            if self._suspects(value):
                lib.muster_node_fail_suspecting(self._c, code, text, 0, ffi.NULL)
            else:
                lib.muster_node_fail(self._c, code, text)
        self.close(code)

    def _finish(self, status: int, error: Any) -> None:
        """Raises what a status means, or what a callback raised."""
        if status == lib.MUSTER_OK:
            return _hooks.raise_pending(self._hooks, None)
        if status == lib.MUSTER_PREEMPTED:
            self._preempted = True
            raised: BaseException = Preempted(
                self._restart_code or lib.muster_status_exit_code(status),
                ffi.string(error.text).decode(),
            )
        else:
            raised = error_of(status, error)
        _hooks.raise_pending(self._hooks, raised)
        raise raised
