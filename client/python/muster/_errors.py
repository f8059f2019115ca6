"""Raises muster's exceptions, and turns Python's arguments into C's."""

from __future__ import annotations

import numbers
import operator
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from ._exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    CorruptError,
    Error,
    ForkedError,
    Interrupted,
    MissingFileError,
    NotFoundError,
    PeerError,
    Preempted,
    RestoreError,
    SaveError,
    StepError,
    TaskError,
    UsageError,
    VersionError,
    WaitTimeout,
    known,
)
from ._native import ffi, lib

_CLASSES: dict[int, type[Error]] = {
    lib.MUSTER_E_ARGUMENT: ArgumentError,
    lib.MUSTER_E_NOT_FOUND: NotFoundError,
    lib.MUSTER_E_CORRUPT: CorruptError,
    lib.MUSTER_E_VERSION: VersionError,
    lib.MUSTER_E_BROKER: BrokerError,
    lib.MUSTER_E_PEER: PeerError,
    lib.MUSTER_E_STEP: StepError,
    lib.MUSTER_E_RESTORE: RestoreError,
    lib.MUSTER_E_SIGNATURE: RestoreError,
    lib.MUSTER_E_SAVE: SaveError,
    lib.MUSTER_E_STORAGE: SaveError,
    lib.MUSTER_E_ABORTED: SaveError,
    lib.MUSTER_E_NOT_SAVED: SaveError,
    lib.MUSTER_E_TASK: TaskError,
    lib.MUSTER_E_INPUT: TaskError,
    lib.MUSTER_E_LOST: TaskError,
    lib.MUSTER_E_TASK_TIMEOUT: TaskError,
    lib.MUSTER_E_CANCELLED: TaskError,
    lib.MUSTER_E_FORKED: ForkedError,
    lib.MUSTER_E_TIMEOUT: WaitTimeout,
    lib.MUSTER_E_INTERRUPTED: Interrupted,
}


def _string(text: Any) -> str:
    return bytes(ffi.string(text)).decode("utf-8", "replace")


_C_CALL = re.compile(
    r"\bmuster_(node|manager|training_state|client|coordinator|worker|remote_value)_([a-z_]+)"
)
_C_OPTIONS = {
    "option checkpoint_dir": "option directory",
    "option save_every_steps": "option save_every",
    "option restore_fallback": "option fallback",
    "termination.save_fn and restore_fn": "save and restore (of a Manager: save_fn and restore_fn)",
}
_C_OPTION = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in _C_OPTIONS))


def _in_python(text: str) -> str:
    """`muster_manager_save` becomes `Manager.save`; a name that Python lacks stays. Options get
    Python's names, too.
    """

    def name(call: re.Match[str]) -> str:
        kind = call[1].title().replace("_", "")
        if call[2] == "open":
            return kind
        found = getattr(sys.modules.get("muster"), kind, None)
        return f"{kind}.{call[2]}" if hasattr(found, call[2]) else call[0]

    return _C_OPTION.sub(lambda option: _C_OPTIONS[option[0]], _C_CALL.sub(name, text))


def error_of(status: int, error: Any) -> Error:
    """The exception of a status, with what C wrote into its struct muster_error."""
    text = _in_python(_string(error.text)) or _string(lib.muster_status_sentence(known(status)))
    return _CLASSES.get(status, Error)(
        status,
        text,
        None if error.rank < 0 else error.rank,
        error.code,
        None if error.step < 0 else error.step,
        task=error.task or None,
    )


def wrong(text: str) -> ArgumentError:
    """The error for an argument that Python itself finds wrong."""
    return ArgumentError(lib.MUSTER_E_ARGUMENT, text)


def misused(text: str) -> UsageError:
    return UsageError(lib.MUSTER_E_ARGUMENT, text)


def missing(text: str) -> MissingFileError:
    return MissingFileError(lib.MUSTER_E_RESTORE, text)


def unfit(what: str, error: BaseException, place: str = "") -> RestoreError:
    """A framework's own error while it takes what was saved.

    place: the checkpoint's path, where the framework loads outside muster's calls.
    """
    said = f"{place}: " * bool(place) + f"{type(error).__name__}: {error}"
    return RestoreError(
        lib.MUSTER_E_RESTORE,
        f"{what} does not fit the checkpoint: {said}. Make it as it was at the save, or start "
        "another job",
    )


def parents(what: str) -> ForkedError:
    """The error for an object of a forked process's parent, where Python itself finds it."""
    return ForkedError(
        lib.MUSTER_E_FORKED, f"this muster.{what} belongs to the parent of this forked process"
    )


def status_of(kind: type[Error]) -> int:
    """The status of an exception that somebody makes of a text alone."""
    found = (status for status, known_kind in _CLASSES.items() if issubclass(kind, known_kind))
    return int(next(found, lib.MUSTER_E_FAULT))


def wrong_type(text: str) -> ArgumentTypeError:
    return ArgumentTypeError(lib.MUSTER_E_ARGUMENT, text)


def new_error() -> Any:
    """An empty struct muster_error: a call that fills none is about no rank and no step."""
    return ffi.new("struct muster_error *", {"rank": -1, "step": -1})


def check(status: int, error: Any) -> None:
    if status != lib.MUSTER_OK:
        raise error_of(status, error)


def milliseconds(name: str, seconds: float | None, unset: int = 0) -> int:
    """Times are seconds in Python and whole milliseconds in C."""
    if seconds is None:
        return unset
    if not isinstance(seconds, numbers.Real):
        raise wrong_type(f"{name} is {seconds!r}; give seconds, as a number")
    if not 0 <= seconds < 1 << 40:
        raise wrong(f"{name} is {seconds!r}; give seconds from 0 on")
    return max(1, round(seconds * 1000)) if seconds else 0


def integer(name: str, value: int | None, unset: int = 0, bits: int = 31) -> int:
    """A number, if C can hold it in this many bits and a sign."""
    if value is None:
        return unset
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong_type(f"{name} is {value!r}; give a whole number") from None
    if not -(1 << bits) <= number < 1 << bits:
        raise wrong(f"{name} is {number}; give a number below 2^{bits}")
    return number


def natural(name: str, value: int | None, unset: int = -1, bits: int = 62) -> int:
    """As integer, for a number from 0 on."""
    number = integer(name, value, unset, bits)
    if value is not None and number < 0:
        raise wrong(f"{name} is {number}; give 0 or more")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False, or what Python or NumPy take for one, but no text and no list."""
    if not hasattr(type(value), "__bool__"):
        raise wrong_type(f"{name} is {value!r}; give True or False")
    return bool(value)


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise wrong_type(f"{name} is {value!r}; give a number") from None


def listed(name: str, value: Any, of: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong_type(f"{name} is {value!r}; give a list of {of}")
    return list(value)


def printable(text: str) -> bytes:
    """A text that muster only shows: what C cannot hold of it is written as an escape."""
    return text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")


def encoded(name: str, value: str | os.PathLike[str]) -> bytes:
    """A word or a path, as bytes for C."""
    try:
        data = os.fsencode(value)
    except TypeError:
        raise wrong_type(f"{name} is {value!r}; give it as text") from None
    except UnicodeEncodeError:
        raise wrong(f"{name} is {value!r}, which is no Unicode text") from None
    if b"\0" in data:
        raise wrong(f"{name} is {value!r}; it may have no NUL")
    return data


__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BrokerError",
    "CorruptError",
    "Error",
    "ForkedError",
    "Interrupted",
    "MissingFileError",
    "NotFoundError",
    "PeerError",
    "Preempted",
    "RestoreError",
    "SaveError",
    "StepError",
    "TaskError",
    "UsageError",
    "VersionError",
    "WaitTimeout",
    "check",
    "encoded",
    "error_of",
    "flag",
    "integer",
    "listed",
    "milliseconds",
    "missing",
    "misused",
    "natural",
    "new_error",
    "number",
    "parents",
    "printable",
    "status_of",
    "unfit",
    "wrong",
    "wrong_type",
]
