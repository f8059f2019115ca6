"""Reads what the library tells of a node, out of its queue: no Python runs on the library's threads.

In a program that has set up logging, lines of the library's log are records of the logger "muster".
A daemon thread passes them on, and ends when the node is closed. For others the library writes its
errors and warnings to stderr. All other events wait for Node.events().
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from ._errors import check, milliseconds, new_error
from ._native import ffi, lib

log = logging.getLogger("muster")

_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_LINES = 1 << lib.MUSTER_EVENT_LOG
_OTHERS = 0xFFFFFFFF & ~_LINES
_KINDS = {
    lib.MUSTER_EVENT_ERROR: "error",
    lib.MUSTER_EVENT_NOTICE: "notice",
    lib.MUSTER_EVENT_COMMIT: "commit",
}
_LONG = 3600_000  # milliseconds
_SLICE = 0.2  # seconds, for Ctrl-C
_PATIENCE = 1.5  # seconds, as long as the library's own close waits for a callback


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened at a node. What does not belong to its kind is None.

    kind: "error", another rank failed: rank, code, step, text. "notice", the announced end of a
    process has changed: notice (as Announced.kind; None = none is announced any more), rank, and
    left, in seconds from then on. "commit", a checkpoint of the job is on record: step.
    lost: how many events before this one were dropped, because nobody read them.
    """

    kind: str
    rank: int | None = None
    code: int | None = None
    step: int | None = None
    text: str | None = None
    notice: str | None = None
    left: float | None = None
    lost: int = 0


NOTICES = {
    "preempt": lib.MUSTER_NOTICE_PREEMPT,
    "terminate": lib.MUSTER_NOTICE_TERMINATE,
    "stop": lib.MUSTER_NOTICE_STOP,
    "reboot": lib.MUSTER_NOTICE_REBOOT,
    "time_limit": lib.MUSTER_NOTICE_TIME_LIMIT,
    "signal": lib.MUSTER_NOTICE_SIGNAL,
    "user": lib.MUSTER_NOTICE_USER,
}


def notice_name(kind: int) -> str:
    return next((name for name, value in NOTICES.items() if value == kind), "user")


def _text(event: Any) -> str:
    raw: bytes = ffi.string(event.text)
    return raw.decode("utf-8", "replace")


def _event(told: Any) -> Event:
    is_error = told.kind == lib.MUSTER_EVENT_ERROR
    return Event(
        _KINDS.get(told.kind, "unknown"),
        None if told.rank < 0 else told.rank,
        told.code if is_error else None,
        None if told.step < 0 else told.step,
        _text(told) if is_error else None,
        None if told.notice == lib.MUSTER_NOTICE_NONE else notice_name(told.notice),
        None if told.left_ms < 0 else told.left_ms / 1000,
        told.lost,
    )


def _free(queue: Any) -> None:
    lib.muster_events_destroy(ffi.new("muster_events_t **", queue))


def _pass_lines(queue: Any) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the program's threads'
    told = ffi.new("struct muster_event *")
    while True:
        status = lib.muster_events_next(
            queue, _LINES, _LONG, told, ffi.sizeof(told[0]), ffi.NULL
        )
        if status == lib.MUSTER_E_TIMEOUT:
            continue
        if status != lib.MUSTER_OK:
            return
        if told.lost:
            log.warning(
                "%d lines of muster's log are lost: logging was too slow for them", told.lost
            )
        log.log(_LEVELS[told.level], "%s", _text(told))


class Events:
    """The queue of the node that is opened with these options, until end()."""

    def __init__(self, options: Any) -> None:
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._ended = False
        box = ffi.new("muster_events_t **")
        follows = log.hasHandlers()
        error = new_error()
        check(lib.muster_events_create(_OTHERS | (_LINES if follows else 0), box, error), error)
        self._queue = options.events = ffi.gc(box[0], _free)
        if follows:
            self._thread = threading.Thread(
                target=_pass_lines, args=(self._queue,), name="muster-log", daemon=True
            )
            self._thread.start()

    def read(self, timeout: float | None) -> Iterator[Event]:
        told = ffi.new("struct muster_event *")
        error = new_error()
        milliseconds("timeout", timeout)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE if until is None else min(_SLICE, max(0.0, until - time.monotonic()))
            status = lib.muster_events_next(
                self._queue, _OTHERS, milliseconds("timeout", left), told, ffi.sizeof(told[0]), error
            )
            if status == lib.MUSTER_OK:
                yield _event(told)
                until = None if timeout is None else time.monotonic() + timeout
            elif status == lib.MUSTER_E_CLOSED:
                return
            elif status != lib.MUSTER_E_TIMEOUT:
                check(status, error)
            elif until is not None and time.monotonic() >= until:
                return

    def end(self) -> None:
        """Waits until handlers have handled what was logged before, for 1.5 s at most."""
        if self._ended or self._pid != os.getpid():
            return
        self._ended = True
        lib.muster_events_end(self._queue)
        if self._thread not in (None, threading.current_thread()) and self._thread.is_alive():
            self._thread.join(_PATIENCE)  # not alive: Ctrl-C kept it from starting

    def __del__(self) -> None:
        if hasattr(self, "_queue"):
            self.end()
