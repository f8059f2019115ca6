"""A save that the program writes by itself: watches it while it lasts, syncs and measures it."""

from __future__ import annotations

import atexit
import errno
import os
import pathlib
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ._native import lib

_PERIOD = 5.0  # seconds; muster gives up a save that tells nothing for 60
PATIENCE = 600.0  # seconds in which a save writes no byte, so that it hangs


def _is_file(path: str) -> bool:
    """Is it a file, and there? Another rank may rename or delete it. Raises other OSErrors."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def _walk(path: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """The path and everything below it; True marks a file. What another rank renames or deletes
    meanwhile is left out. Raises other OSErrors.
    """

    def unlisted(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise error

    if _is_file(str(path)):
        yield str(path), True
    for folder, _, names in os.walk(path, onerror=unlisted):
        yield folder, False
        for file in (os.path.join(folder, name) for name in names):
            if _is_file(file):
                yield file, True


def size(path: pathlib.Path, is_over: Callable[[], bool] = lambda: False) -> int:
    """is_over: asked before each file; true = nobody wants to know any more."""
    size = 0
    for place, is_file in _walk(path):
        if is_over():
            break
        try:
            size += os.path.getsize(place) if is_file else 0
        except (FileNotFoundError, NotADirectoryError):
            pass  # another rank renamed it
    return size


def sync(path: pathlib.Path) -> None:
    """Syncs what a framework wrote to the disk, before muster's record points to it."""
    for place in [*(place for place, _ in _walk(path)), str(path.parent)]:
        try:
            number = os.open(place, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            continue  # another rank renamed it, which syncs its own
        try:
            os.fsync(number)
        finally:
            os.close(number)


def written(path: pathlib.Path) -> dict[str, Any]:
    """Syncs `path`, and returns what muster records of it."""
    sync(path)
    return {"path": str(path), "bytes": size(path)}


class Progress:
    """Tells muster how much is written, while the program writes. By its own thread: the training
    thread is inside the program. What it tells grows also while nothing is written, as in an
    evaluation that comes first.

    node: C's; it is not closed before stop(). path: of what is written; names that begin with it
    and a dot count too. patience: so many seconds without a byte more, and muster is told nothing
    any more, so it gives the save up. None = not before the notice, or the manager's save_timeout.
    """

    def __init__(
        self, node: Any, path: pathlib.Path | None, patience: float | None = PATIENCE
    ) -> None:
        self._node = node
        self._path = path
        self._patience = patience
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muster progress", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            return  # the interpreter ends: Python begins no thread in its last save
        atexit.register(self.stop)  # before the node's own, which frees what the thread uses

    def _size(self) -> int:
        if self._path is None:
            return 0
        others = self._path.parent.glob(f"{self._path.name}.*")
        return sum(size(path, self._ended.is_set) for path in (self._path, *others))

    def _run(self) -> None:
        told, most, still = 0, 0, 0.0
        while not self._ended.wait(_PERIOD):
            try:
                written = self._size()
            except OSError:
                written = most  # a folder that cannot be read now
            if self._ended.is_set():
                return
            still = 0.0 if written > most else still + _PERIOD
            most = max(most, written)
            if self._patience is None or still < self._patience:
                told = max(told + 1, most)
                lib.muster_node_save_progress(self._node, told)

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        atexit.unregister(self.stop)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> None:
        self.stop()
