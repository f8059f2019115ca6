"""What muster.transformers and muster.lightning share: versions, and a save that others write."""

from __future__ import annotations

import atexit
import logging
import os
import pathlib
import threading
import warnings

from ._errors import Error, SaveError
from ._member import Member
from ._native import lib

log = logging.getLogger("muster")

_OVER = (lib.MUSTER_E_BUSY, lib.MUSTER_E_EXISTS)  # the step was over, or saved, already
_PERIOD = 5.0  # seconds; muster gives up a save that tells nothing for 60


def check_version(module: str, framework: str, version: str, tested: str) -> None:
    """Warns of a version that nobody tested; `tested` is its major and minor number."""
    if version.split(".")[:2] != tested.split("."):
        warnings.warn(
            f"{module} was tested with {framework} {tested}, and this is {framework} {version}; "
            "preempt and resume a short run of yours before you rely on it, or install "
            f"{framework}=={tested}.*",
            RuntimeWarning,
            stacklevel=3,
        )


def was_not_saved(raised: BaseException | None) -> bool:
    """A save that failed, after which training goes on; it is logged."""
    if not isinstance(raised, SaveError) and not (
        isinstance(raised, Error) and raised.status in _OVER
    ):
        return False
    log.warning("%s", raised)
    return True


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file()]


def size(path: pathlib.Path) -> int:
    size = 0
    for file in _files(path):
        try:
            size += file.stat().st_size
        except FileNotFoundError:
            pass  # another rank renamed it
    return size


def sync(path: pathlib.Path) -> None:
    """What a framework wrote is on the disk when this returns: muster's record points to it."""
    files = _files(path)
    for place in [*files, *{file.parent for file in files}, path.parent]:
        try:
            number = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another rank renamed it, which syncs its own
        try:
            os.fsync(number)
        finally:
            os.close(number)


class Progress:
    """Tells muster how much a framework has written, while the framework writes. By its own thread:
    the training thread is inside the framework. What it tells grows also while nothing is written,
    as in an evaluation that comes first: a save that hangs ends with the notice, or with the
    manager's save_timeout.

    path: of what is written; names that begin with it and a dot count too. patience: so many
    seconds without a byte more, and muster is told nothing any more, so it gives the save up.
    """

    def __init__(
        self, manager: Member, path: pathlib.Path | None, patience: float | None = None
    ) -> None:
        self._manager = manager  # is not closed before stop()
        self._path = path
        self._patience = patience
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muster progress", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # before the manager's own, which frees what the thread uses

    def _size(self) -> int:
        if self._path is None:
            return 0
        return size(self._path) + sum(map(size, self._path.parent.glob(f"{self._path.name}.*")))

    def _run(self) -> None:
        told, most, still = 0, 0, 0.0
        while not self._ended.wait(_PERIOD):
            written = self._size()
            still = 0.0 if written > most else still + _PERIOD
            most = max(most, written)
            if self._patience is None or still < self._patience:
                told = max(told + 1, most)
                lib.muster_node_save_progress(self._manager._c, told)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        atexit.unregister(self.stop)
