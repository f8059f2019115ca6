"""muster's exceptions: what happened, to what, and what to do next."""

from __future__ import annotations

import errno
import numbers
import operator
import os
from typing import Any

from ._native import ffi, lib


class Error(Exception):
    """A call of muster's failed.

    status: the number of <muster/status.h>; name: its name, as "MUSTER_E_BROKER".
    text: one line that says what happened, to what. advice: what to do next.
    rank, step, task: which it is about, None = none. code: errno, or a peer's own code, 0 = none.
    """

    def __init__(
        self,
        status: int,
        text: str,
        rank: int | None = None,
        code: int = 0,
        step: int | None = None,
        *,
        advice: str = "",
        task: int | None = None,
    ) -> None:
        super().__init__(status, text, rank, code, step)
        self.status = status
        self.text = text
        self.rank = rank
        self.code = code
        self.step = step
        self.task = task
        self._advice = advice

    @property
    def name(self) -> str:
        """The status's name, as "MUSTER_E_BROKER"."""
        return _string(lib.muster_status_name(_known(self.status)))

    @property
    def advice(self) -> str:
        """What to do next, in one line."""
        return self._advice or _string(lib.muster_status_advice(_known(self.status)))

    @property
    def exit_code(self) -> int:
        """What a program that ends with this error exits with: 1, or 93 where a restart cannot
        help.
        """
        return int(lib.muster_status_exit_code(_known(self.status)))

    def __str__(self) -> str:
        return f"{self.text} ({self.name}: {self.advice})"


class ArgumentError(Error, ValueError):
    """A call got an argument that it cannot take; `text` names it."""


class ArgumentTypeError(ArgumentError, TypeError):
    """A call got an argument of a type that it cannot take."""


class UsageError(Error, RuntimeError):
    """A call at the wrong moment, or of parts that do not go together; `text` says what to do."""


class NotFoundError(Error, KeyError):
    """There is no such thing; `text` names it."""


class VersionError(Error, ImportError):  # type: ignore[misc]  # `name` is the status's
    """Two parts have versions that do not work together; `text` names both."""


class CorruptError(Error):
    """A file that was read is damaged; `text` names it."""


class BrokerError(Error):
    """No broker answered."""


class PeerError(Error):
    """Another rank failed or vanished; `rank`, `code` and `text` are its own."""


class StepError(Error):
    """This process's step failed, and the other ranks were told."""


class RestoreError(Error):
    """A checkpoint could not be restored."""


class MissingFileError(RestoreError, FileNotFoundError):
    """A file that a checkpoint should have, or that it names, is not there; `text` names it."""

    def __init__(self, *told: Any, **more: Any) -> None:
        super().__init__(*told, **more)
        self.errno = errno.ENOENT  # OSError takes the status for it


class SaveError(Error):
    """A checkpoint could not be saved; earlier ones are untouched."""


class TaskError(Error):
    """A task failed, or was cancelled; `task` is its number, and `code` its function's."""


class ForkedError(Error):
    """The node belongs to the parent of this forked process."""


class WaitTimeout(Error, TimeoutError):
    """The wait ended without what was waited for."""


class Interrupted(Error, KeyboardInterrupt):
    """A wait of muster's, or a read or write, was broken off by Ctrl-C."""


class Preempted(SystemExit):
    """The job is being terminated, and its state is saved. Let it pass: the process ends with the
    restart code.

    code: the restart code. text: why, and what was saved.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code)
        self.text = text

    def __reduce__(self) -> tuple[type[Preempted], tuple[Any, str]]:
        return type(self), (self.code, self.text)  # a pickle of SystemExit's knows the code alone

    def __str__(self) -> str:
        return self.text


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


def _known(status: int) -> int:
    return status if 0 <= status < lib.MUSTER_STATUS_COUNT else int(lib.MUSTER_E_FAULT)


def error_of(status: int, error: Any) -> Error:
    """The exception of a status, with what C wrote into its struct muster_error."""
    text = _string(error.text) or _string(lib.muster_status_sentence(_known(status)))
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


def unfit(what: str, error: BaseException) -> RestoreError:
    """A framework's own error while it takes what was saved."""
    return RestoreError(
        lib.MUSTER_E_RESTORE,
        f"{what} does not take what was saved of it: {type(error).__name__}: {error}. Make it as "
        "it was then, or start another job",
    )


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
    """A number, if C can hold it in so many bits and a sign."""
    if value is None:
        return unset
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong_type(f"{name} is {value!r}; give a whole number") from None
    if not -(1 << bits) <= number < 1 << bits:
        raise wrong(f"{name} is {number}; give a number below 2^{bits}")
    return number


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
