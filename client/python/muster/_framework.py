"""What the frameworks' modules share: versions, and how a save ends."""

from __future__ import annotations

import contextlib
import functools
import re
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

from ._errors import Error, Preempted, SaveError, VersionError, unfit, wrong
from ._log import log
from ._native import lib

_OVER = (lib.MUSTER_E_BUSY, lib.MUSTER_E_EXISTS)  # the step was over, or saved, already


# By the name of its package: the version that muster was tested with, and the oldest that has all
# that muster's module uses.
TESTED = {
    "torch": ("2.15", "2.4"),
    "transformers": ("5.23", "5.4"),
    "accelerate": ("1.15", "1.0"),
    "lightning": ("2.6", "2.4"),
    "torchdata": ("0.11", "0.8"),
    "jax": ("0.10", "0.9"),
    "orbax-checkpoint": ("0.12", "0.11.20"),
    "keras": ("3.15", "3.5"),
}


def _numbers(version: str) -> tuple[int, ...]:
    """"2.15.0+cpu" is 2, 15, 0."""
    return tuple(map(int, re.findall(r"\d+", version.split("+")[0])[:3]))


def is_tested(framework: str, version: str) -> bool:
    return _numbers(version)[:2] == _numbers(TESTED[framework][0])


def is_too_old(framework: str, version: str) -> bool:
    return _numbers(version) < _numbers(TESTED[framework][1])


def require_version(module: str, framework: str, version: str) -> None:
    """Raises VersionError where muster's module lacks something. Call it before the module imports
    what an old version has not.
    """
    tested, oldest = TESTED[framework]
    if is_too_old(framework, version):
        raise VersionError(
            lib.MUSTER_E_VERSION,
            f"{module} cannot use {framework} {version}: it needs {oldest} or later, and was "
            f"tested with {tested}",
            advice=f"pip install '{framework}=={tested}.*'",
        )


def check_version(module: str, framework: str, version: str) -> None:
    """As require_version, and warns of a version that nobody tested."""
    require_version(module, framework, version)
    tested = TESTED[framework][0]
    if not is_tested(framework, version):
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


def own_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a node each of whose ranks saves what is its own, as its random numbers are."""
    if options.get("layout", "sharded") != "sharded":
        raise wrong(
            f"layout is {options['layout']!r}, with which every rank would get the random numbers "
            "and the position in the data of the rank that wrote; leave it out"
        )
    return {**options, "layout": "sharded"}


@contextlib.contextmanager
def _told(what: str, place: str) -> Iterator[None]:
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            raise  # PyTorch's, too
        raise unfit(what, error, place) from error


class Loads(contextlib.ExitStack):
    """Makes a framework's own loading methods raise RestoreError from its error, until close()."""

    def tell_all(self, kind: type, method: str, what: str, place: str) -> None:
        """As tell, for every object of a class: for one that the framework makes later."""
        own = getattr(kind, method)

        @functools.wraps(own)
        def load(self: Any, *given: Any, **named: Any) -> Any:
            with _told(what, place):
                return own(self, *given, **named)

        self.callback(setattr, kind, method, own)
        setattr(kind, method, load)

    def tell(self, owner: Any, method: str, what: str, place: str) -> None:
        own = getattr(owner, method)

        @functools.wraps(getattr(own, "__func__", own))
        def load(self: Any, *given: Any, **named: Any) -> Any:
            with _told(what, place):
                return (own if self is owner else getattr(type(self), method).__get__(self))(
                    *given, **named
                )

        if method in vars(owner):
            self.callback(setattr, owner, method, own)
        else:
            self.callback(delattr, owner, method)
        setattr(owner, method, types.MethodType(load, owner))  # a deep copy has its own


class Leaving:
    """A block whose Preempted leaves the job, by `leave`. A save that failed is logged: training
    goes on.
    """

    def __init__(self, leave: Callable[[BaseException], None]) -> None:
        self._leave = leave

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(raised, Preempted):
            self._leave(raised)
        return was_not_saved(raised)
