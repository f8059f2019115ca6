"""Which checkpoints a job has: the questions that managers and readers answer."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from . import _hooks
from ._closing import Closing, Turns
from ._errors import encoded, integer, milliseconds, new_error, wrong
from ._native import ffi, lib


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """A committed checkpoint. metadata is None where only Manager.metadata() reads it."""

    checkpoint: int
    step: int
    path: str
    epoch: int | None
    step_in_epoch: int | None
    data_position: int | None
    committed_unix_s: float
    bytes: int
    pinned: bool
    metrics: dict[str, float]
    metadata: Any


def told_number(value: int) -> int | None:
    return None if value < 0 else int(value)


def _json(text: Any) -> Any:
    raw = ffi.string(text) if text != ffi.NULL else b""
    return json.loads(raw) if raw else None


_INFO_SIZE = ffi.sizeof("struct muster_checkpoint_info")


def _info(info: Any) -> CheckpointInfo:
    return CheckpointInfo(
        checkpoint=int(info.checkpoint),
        step=info.step,
        path=os.fsdecode(ffi.string(info.path)),
        epoch=told_number(info.epoch),
        step_in_epoch=told_number(info.step_in_epoch),
        data_position=told_number(info.data_position),
        committed_unix_s=info.committed_unix_ms / 1000,
        bytes=info.bytes,
        pinned=info.pinned,
        metrics=_json(info.metrics) or {},
        metadata=_json(info.custom_metadata),
    )


class Checkpoints(Turns):
    """The calls that need a struct muster_manager alone, self._manager(). Each asks the broker, and
    raises BrokerError when no answer comes.
    """

    _error: Any

    def _manager(self) -> Any:
        raise NotImplementedError

    def _finish(self, status: int, error: Any) -> None:
        raise NotImplementedError

    def _status(self, call: Any, *arguments: Any) -> int:
        return int(self._alone(call, self._manager(), *arguments, self._error))

    def _ask(self, call: Any, *arguments: Any) -> None:
        """A call whose first argument is the manager, and whose last one is the error."""
        self._finish(self._status(call, *arguments), self._error)

    def all_steps(self) -> list[CheckpointInfo]:
        """All committed checkpoints that count, by step. Asks the broker."""
        found = ffi.new("struct muster_checkpoint_info const **")
        count = ffi.new("size_t *")
        self._ask(lib.muster_manager_all_steps, found, count, _INFO_SIZE)
        return [_info(found[0][at]) for at in range(count[0])]

    def latest_step(self) -> int | None:
        """The newest step, None = nothing is saved."""
        return self._step(lib.muster_manager_latest_step)

    def best_step(self, metric: str, *, greatest: bool = False) -> int | None:
        """The best step by a metric, the newer of equals; None = no checkpoint has the metric."""
        return self._step(lib.muster_manager_best_step, encoded("metric", metric), greatest)

    def metadata(self, step: int) -> CheckpointInfo:
        """The checkpoint of one step, with its metadata. Raises NotFoundError."""
        found = ffi.new("struct muster_checkpoint_info const **")
        self._ask(lib.muster_manager_metadata, integer("step", step, bits=62), found, _INFO_SIZE)
        return _info(found[0])

    def pin(self, step: int, lease: float) -> None:
        """Protects the checkpoint of this step for `lease` seconds, or until unpin or close.
        Raises NotFoundError when there is none.
        """
        number, ms = integer("step", step, bits=62), milliseconds("lease", lease)
        self._ask(lib.muster_manager_pin, number, ms, ffi.NULL)

    def unpin(self, step: int) -> None:
        """Ends what pin began."""
        self._ask(lib.muster_manager_unpin, integer("step", step, bits=62))

    def _step(self, call: Any, *arguments: Any) -> int | None:
        step = ffi.new("int64_t *")
        status = self._status(call, *arguments, step)
        if status == lib.MUSTER_E_NOT_FOUND:
            return None
        self._finish(status, self._error)
        return int(step[0])


class Reader(Checkpoints, Closing):
    """Sees the checkpoints of a job that other processes train: for an evaluator, say.

        with muster.Reader(job="mine") as reader:
            for step in iter(lambda: reader.next_checkpoint(timeout=3600), None):
                saved = muster.read(reader.metadata(step).path)
                ...

    It takes no part in the job, and holds no checkpoint of it: pin one that the job's policies
    could delete while it is read.

    job alone: asks the broker that MUSTER_BROKER names, else the one of this host.
    broker: its address, with job. directory then tells where this host sees the checkpoints, if
    its path is not the ranks' path.
    directory without broker: the directory is read, no broker is asked, and nothing can be pinned.
    timeout: seconds for each answer. appear: seconds to wait until the directory is there.
    One thread at a time. Ctrl-C ends each wait within a second.

    Raises NotFoundError if there is no such directory.
    """

    _what = "Reader"

    def __init__(
        self,
        *,
        job: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        broker: str | None = None,
        timeout: float = 5.0,
        appear: float | None = None,
    ) -> None:
        own = ffi.new("struct muster_manager_options *")
        lib.muster_manager_options_init(own, ffi.sizeof("struct muster_manager_options"))
        texts = [
            ffi.NULL if value is None else ffi.new("char[]", encoded(name, value))
            for name, value in (("job", job), ("directory", directory), ("broker", broker))
        ]
        own.job, own.checkpoint_dir, own.broker = texts
        own.query_timeout_ms = milliseconds("timeout", timeout)
        own.directory_timeout_ms = milliseconds("appear", appear)
        self._begin_turns()
        self._hooks = _hooks.Hooks()
        own.interrupted_fn, own.arg = lib.muster_py_interrupted, self._hooks.handle
        self._error = new_error()
        self._pid = os.getpid()
        self._box: Any = None
        box = ffi.new("muster_manager_t **")
        self._finish(lib.muster_manager_open(own, box, self._error), self._error)
        self._box = box

    def next_checkpoint(self, timeout: float) -> int | None:
        """Waits for a checkpoint of a later step than this call gave last, and returns the newest
        one's step; None = none came within `timeout` seconds.
        """
        step, ms = ffi.new("int64_t *"), milliseconds("timeout", timeout)
        status = self._status(lib.muster_manager_next_checkpoint, ms, step)
        if status == lib.MUSTER_E_TIMEOUT:
            return None
        self._finish(status, self._error)
        return int(step[0])

    def close(self) -> None:
        """Ends its pins. A second call does nothing."""
        box = self._take_box()
        if box is not None:
            self._finish(lib.muster_manager_close(box, 0, self._error), self._error)

    def __del__(self) -> None:
        self.close()

    def _manager(self) -> Any:
        if self._box is None:
            raise wrong("this muster.Reader is closed; open another")
        return self._box[0]

    def _finish(self, status: int, error: Any) -> None:
        _hooks.settle(self._hooks, status, error)
