"""The `with` block of everything that has a close, and the rule of one call at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ._errors import parents, wrong
from ._native import ffi, lib

Self = TypeVar("Self", bound="Closing")
Result = TypeVar("Result")


class Closing:
    """Closes itself at the end of its `with`, whatever happened in it."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Turns:
    """One call at a time. An object of C belongs to one thread, and C calls Python back inside a
    call: what another thread, a signal handler or a callable asks of it then is refused.
    """

    _what: str
    _turn: Any
    _box: Any
    _pid: int

    def _begin_turns(self) -> None:
        self._turn = ffi.new("struct muster_py_turn *")

    def _take_turn(self) -> None:
        if not lib.muster_py_turn_take(self._turn):
            raise self._in_a_call()

    def _take_box(self) -> Any:
        """The object of C, for its close; None: it is closed, or the parent process's."""
        if getattr(self, "_box", None) is None:
            return None
        ours = self._pid == os.getpid()
        if ours:
            self._take_turn()
        box, self._box = self._box, None
        return box if ours else None

    def _in_a_call(self) -> Exception:
        if self._pid != os.getpid():  # forked in the middle of a call
            return parents(self._what)
        return wrong(
            f"this muster.{self._what} is in another call: another thread makes it, or this "
            "signal handler or callable interrupted it; call again when it has returned"
        )

    def _alone(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """A call of C, alone."""
        self._take_turn()
        try:
            return call(*arguments)
        finally:
            lib.muster_py_turn_give(self._turn)
