"""SIGTERM where a framework or a helper process has its own mind about it."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

from ._native import lib


def shield(worker_id: int = 0) -> None:
    """In a helper process of a rank: SIGTERM from anybody but the parent is ignored.

    As worker_init_fn of a DataLoader it keeps the workers alive when a launcher sends SIGTERM to
    the whole process group, so that the rank can still save. A parent that ends its workers does
    so as before.
    """
    code = lib.muster_py_shield()
    if code != 0:
        raise OSError(code, f"SIGTERM cannot be handled: {os.strerror(code)}")


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
