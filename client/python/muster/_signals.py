"""SIGTERM where a framework or a helper process handles it in its own way."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from ._native import lib


def shield(worker_id: int = 0) -> None:
    """In a helper process of a rank: SIGTERM from anybody but the parent is ignored.

    As worker_init_fn of a DataLoader it keeps the workers alive when a launcher sends SIGTERM to
    the whole process group, so that the rank can still save. A parent that ends its workers does
    so as before.
    """
    lib.muster_shield()
    if _start.waits:  # what came since the fork is heard by the shield
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))


def shield_behind(init: Callable[[int], object] | None, worker_id: int) -> None:
    """A worker_init_fn: the program's own, and then the shield."""
    if init is not None:
        init(worker_id)
    shield(worker_id)


class _Start:
    """A worker has no shield before its worker_init_fn runs. So SIGTERM waits from its fork until
    then: of a process that multiprocessing starts with the shield among its arguments, as a
    DataLoader's worker is. Of all others nothing changes.
    """

    def __init__(self) -> None:
        self.waits = False  # of the newest fork
        self._before: Any = None
        os.register_at_fork(before=self._begins, after_in_parent=self._ends)

    @staticmethod
    def _has_shield() -> bool:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_name != "_launch":
            frame = frame.f_back
        process = None if frame is None else frame.f_locals.get("process_obj")
        for argument in getattr(process, "_args", ()):
            function = argument.func if isinstance(argument, functools.partial) else argument
            if function is shield or function is shield_behind:
                return True
        return False

    def _begins(self) -> None:
        self.waits = self._has_shield()
        if self.waits:
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))

    def _ends(self) -> None:
        if self.waits:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
        self.waits = False


_start = _Start()


_set = signal.signal


def put_back_at_once() -> None:
    """A handler that the program sets from here on by signal.signal lies below muster's at once,
    and not only when muster looks, within a second.
    """
    if signal.signal is _set:
        signal.signal = _set_below


@functools.wraps(_set)
def _set_below(signalnum: Any, handler: Any) -> Any:
    before = _set(signalnum, handler)
    lib.muster_signals_put_back()
    return before


def hear_instead_of(displaced: Any, before: Any) -> None:
    """Where a framework has put `displaced` over SIGTERM: muster hears it instead, and then
    `before`, the handler that the program had.
    """
    if signal.getsignal(signal.SIGTERM) is not displaced:
        return

    def handler(signo: int, frame: FrameType | None) -> None:
        lib.muster_notify_signal(signo)
        if callable(before):
            before(signo, frame)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)
