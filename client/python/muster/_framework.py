"""What the frameworks' modules share: versions, and how a save ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ._errors import Error, Preempted, SaveError, wrong
from ._log import log
from ._native import lib

_OVER = (lib.MUSTER_E_BUSY, lib.MUSTER_E_EXISTS)  # the step was over, or saved, already


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


def own_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a node each of whose ranks saves what is its own, as its random numbers are."""
    if options.get("layout", "sharded") != "sharded":
        raise wrong(
            f"layout is {options['layout']!r}, with which every rank would get the random numbers "
            "and the position in the data of the rank that wrote; leave it out"
        )
    return {**options, "layout": "sharded"}


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
