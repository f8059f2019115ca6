"""muster's exceptions: what happened, to what, and what to do next.

This module needs no library: so it can report one that does not load.
"""

from __future__ import annotations

import errno
from typing import Any


def known(status: int) -> int:
    """The status, or MUSTER_E_FAULT for a number that this library does not have."""
    from ._native import lib

    return status if 0 <= status < lib.MUSTER_STATUS_COUNT else int(lib.MUSTER_E_FAULT)


def _said(call: str, status: int) -> str:
    from ._native import ffi, lib

    text: bytes = ffi.string(getattr(lib, call)(known(status)))
    return text.decode("utf-8", "replace")


class Error(Exception):
    """A call of muster's failed.

    status: the number of <muster/status.h>; name: its name, as "MUSTER_E_BROKER".
    text: one line that says what happened, to what. advice: what to do next.
    rank, step, task: which it is about, None = none. code: errno, or a peer's own code, 0 = none.
    """

    def __init__(
        self,
        status: int | str,
        text: str = "",
        rank: int | None = None,
        code: int = 0,
        step: int | None = None,
        *,
        advice: str = "",
        task: int | None = None,
    ) -> None:
        if isinstance(status, str):  # so PyTorch makes what a worker of a DataLoader raised
            from ._errors import status_of

            text = status
            status = status_of(type(self))
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
        return _said("muster_status_name", self.status)

    @property
    def advice(self) -> str:
        """What to do next, in one line."""
        return self._advice or _said("muster_status_advice", self.status)

    @property
    def exit_code(self) -> int:
        """What a program that ends with this error exits with: 1, or 93 where a restart cannot
        help.
        """
        from ._native import lib

        return int(lib.muster_status_exit_code(known(self.status)))

    def __str__(self) -> str:
        advice = self.advice
        said = "" if advice in self.text else f": {advice}"
        return f"{self.text} ({self.name}{said})"


class ArgumentError(Error, ValueError):
    """A call got an argument that it cannot take; `text` names it."""


class ArgumentTypeError(ArgumentError, TypeError):
    """A call got an argument of a type that it cannot take."""


class UsageError(Error, RuntimeError):
    """A call at the wrong moment, or with parts that do not go together; `text` says what to do."""


class NotFoundError(Error, KeyError):
    """There is no such thing; `text` names it."""


class VersionError(Error, ImportError):
    """Two parts have versions that do not work together; `text` names both. It works without
    the library, which may be the part that does not load.
    """

    @property
    def name(self) -> str:  # type: ignore[override]  # ImportError's is the module's
        """MUSTER_E_VERSION."""
        return "MUSTER_E_VERSION"

    @property
    def exit_code(self) -> int:
        """93: a restart cannot help."""
        return 93


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
    """The node, or whatever was called, belongs to the parent of this forked process."""


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
