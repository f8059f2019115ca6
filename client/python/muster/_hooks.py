"""The callbacks of a node or client. All run on the thread that is inside a call of muster's, never
on muster's own.

An exception that a callback raises is kept, told to the other ranks, and raised again by the call.
An exception in a save is final: nobody tries that save again.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ._errors import Preempted, check, error_of, printable
from ._log import Events
from ._native import ffi, lib
from ._progress import Progress

_CTRL_C_CODE = 130  # as a shell says of SIGINT


def exit_code_of(value: BaseException | None) -> int:
    """The exit code of a process that this exception ends; 0 for one that is preempted, which
    muster itself tells.
    """
    if value is None or isinstance(value, Preempted):
        return 0
    if isinstance(value, SystemExit):
        if isinstance(value.code, int):
            whole = -(1 << 63) <= value.code < 1 << 63
            return value.code & 0xFF if whole else 0xFF  # as Python and the system cut it
        return 0 if value.code is None else 1
    return _CTRL_C_CODE if isinstance(value, KeyboardInterrupt) else 1


def text_of(value: BaseException) -> bytes:
    """Its type and text, for C. A text that cannot be had changes nothing else."""
    name = type(value).__name__
    try:
        text = str(value)
    except Exception as error:
        text = f"(its text cannot be had: {type(error).__name__})"
    return printable(f"{name}: {text}" if text else name)


class Hooks:
    """What C gives back as `arg`. It knows no node, so that a node without references is freed."""

    def __init__(
        self,
        save: Callable[[Any], object] | None = None,
        restore: Callable[[Any], object] | None = None,
        check: Callable[[], object] | None = None,
    ) -> None:
        self.check = check  # before the state is read
        self.save = save
        self.restore = restore
        self.raised: BaseException | None = None
        self.node: Any = ffi.NULL  # once it is open
        self.turn: Any = None  # of the node
        self.manager: Any = None  # or what holds it, while it restores
        self.events: Events | None = None  # of the node
        self.hurries = False  # the program is to end now (Ctrl-C), and waits for nobody
        self.handle = ffi.new_handle(self)


def _keep(
    kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
) -> None:
    assert trace is not None
    names = trace.tb_frame.f_locals
    hooks = ffi.from_handle(names["arg"] if "arg" in names else names["context"].arg)
    hooks.raised = value
    if hooks.turn is not None:
        hooks.turn.raised = True
    node = hooks.node
    if hooks.manager is not None and node == ffi.NULL:
        node = lib.muster_manager_node(hooks.manager[0])
    if value is None or node == ffi.NULL or trace.tb_frame.f_code is _interrupted_code:
        return
    code, text = exit_code_of(value), text_of(value)
    if trace.tb_frame.f_code is _restore_code:
        lib.muster_node_save_fail(node, code, text)
    else:
        lib.muster_node_fail(node, code, text)


@ffi.def_extern(name="muster_py_save", error=1, onerror=_keep)
def _save(context: Any) -> int:
    hooks = ffi.from_handle(context.arg)
    path = pathlib.Path(os.fsdecode(ffi.string(context.directory)))
    with Progress(hooks.node, path):
        hooks.save(context)
    return 0


@ffi.def_extern(name="muster_py_restore", error=1, onerror=_keep)
def _restore(context: Any) -> int:
    ffi.from_handle(context.arg).restore(context)
    return 0


_restore_code = _restore.__code__


@ffi.def_extern(name="muster_py_state_check", error=1, onerror=_keep)
def _state_check(arg: Any) -> int:
    ffi.from_handle(arg).check()
    return 0


@ffi.def_extern(name="muster_py_interrupted", error=True, onerror=_keep)
def _interrupted(arg: Any) -> bool:
    """Python runs its pending signal handlers in here, as in every function; one that raises breaks
    off the wait.
    """
    return bool(ffi.from_handle(arg).hurries)


_interrupted_code = _interrupted.__code__


def add_note(raised: BaseException, note: str) -> None:
    """As BaseException.add_note; tracebacks show notes from Python 3.11 on."""
    setattr(raised, "__notes__", [*getattr(raised, "__notes__", ()), note])


def unfit_note(what: str, place: str) -> str:
    """Where a framework itself takes what was saved, its own error gets what unfit() says."""
    return (
        f"muster: {what} does not fit the checkpoint: {place}. Make it as it was at the save, or "
        "start another job"
    )


def add_unfit(raised: BaseException, what: str, place: str) -> None:
    add_note(raised, unfit_note(what, place))


def raise_pending(hooks: Hooks, error: Exception | BaseException | None) -> None:
    """Raises what a callback raised, with muster's own text as a note."""
    raised, hooks.raised = hooks.raised, None
    if raised is None:
        return
    note = (
        f"muster: {error}"
        if error is not None
        else ("muster: no checkpoint was made of this save; earlier ones are untouched")
    )
    add_note(raised, note)
    try:
        raise raised
    finally:
        del raised


def settle(hooks: Hooks, status: int, error: Any) -> None:
    """Raises what a callback raised, else what a status means."""
    raise_pending(hooks, None if status == lib.MUSTER_OK else error_of(status, error))
    check(status, error)
