"""Passes the library's log to logging. See log.c: no Python runs on a thread of the library's.

A program that has set up logging gets the lines as records of the logger "muster", from a daemon
thread that ends when the node is closed. For others the library writes its errors and warnings to
stderr.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from typing import Any

from ._native import lib

log = logging.getLogger("muster")

_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_LINE_MAX = 1 << 16
_END = b"!"  # no level
_PATIENCE = 1.5  # seconds, as long as the library's own close waits for a callback


class _Pair:
    """One socket pair, and the threads that read it: one for all open nodes of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._users = 0
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            if self._ends is None:
                self._ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                lib.muster_py_log_to(self._ends[0].fileno())
            self._thread = threading.Thread(
                target=self._read, args=(self._ends[1],), name="muster-log", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Waits until handlers have handled what was logged before, for 1.5 s at most."""
        with self._lock:
            self._users -= 1
            if self._users > 0 or self._ends is None:
                return
            ends, thread = self._ends, self._thread
            self._thread = None
            until = time.monotonic() + _PATIENCE
            ends[0].settimeout(_PATIENCE)
            try:
                ends[0].send(_END)
            except OSError:
                return  # a handler hangs; its thread ends when the interpreter does
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))

    @staticmethod
    def _read(end: socket.socket) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the program's threads'
        while True:
            line = end.recv(_LINE_MAX)
            lost = lib.muster_py_log_lost()
            if lost:
                log.warning("%d lines of muster's log are lost: logging was too slow for them", lost)
            if line == _END:
                return
            log.log(_LEVELS[line[0] - ord("0")], "%s", line[1:].decode("utf-8", "replace"))


_pair = _Pair()
os.register_at_fork(after_in_child=_pair.__init__)  # type: ignore[misc]  # the child has no thread


class Lines:
    """From here to end() the lines of a node go to logging, if the program has set that up."""

    def __init__(self, options: Any) -> None:
        self._pid = os.getpid()
        self._follows = log.hasHandlers()
        if self._follows:
            _pair.begin()
            options.log = lib.muster_py_log

    def end(self) -> None:
        if self._follows and self._pid == os.getpid():
            self._follows = False
            _pair.end()

    def __del__(self) -> None:
        if getattr(self, "_follows", False):
            self.end()
