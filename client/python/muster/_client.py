"""Client: asks a broker, or its database, about jobs, and asks something of them."""

from __future__ import annotations

import dataclasses
import os
import uuid
from typing import Any

from . import _hooks
from ._closing import Closing, Turns
from ._errors import check, encoded, milliseconds, new_error, wrong
from ._native import ffi, lib


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of an answer. It has the fields of the C structure of its kind, in <muster/client.h>.
    Times are in seconds: `save_ms` there is `save_s` here, and None = not known.

    extra: columns of a newer broker's answer that this class has no field for.
    """

    extra: dict[str, Any]


def _field_name(column: str) -> str:
    return column[:-3] + "_s" if column.endswith("_ms") else column


def _type_of(column: str, c_type: Any) -> Any:
    if column.endswith("_ms"):
        return float | None
    return {"pointer": str, "primitive": int}[c_type.kind] if c_type is not _BOOL else bool


_BOOL = ffi.typeof("bool")


def _row_class(kind: str, c_name: str) -> type[Row]:
    """A frozen dataclass out of the header's structure: it cannot differ from it."""
    members = [
        (_field_name(name), _type_of(name, member.type))
        for name, member in ffi.typeof(f"struct muster_{c_name}_row").fields
    ]
    return dataclasses.make_dataclass(kind, members, bases=(_Fields,), frozen=True, kw_only=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Fields(Row):
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


KINDS: dict[str, type[Row]] = {
    c_name: _row_class(kind, c_name)
    for kind, c_name in (
        ("Job", "job"),
        ("NodeRow", "node"),
        ("Round", "round"),
        ("Participant", "participant"),
        ("Checkpoint", "checkpoint"),
        ("Shard", "shard"),
        ("File", "file"),
        ("Event", "event"),
        ("Notice", "notice"),
        ("Generation", "generation"),
        ("TaskQueue", "task_queue"),
        ("Task", "task"),
        ("TaskWorker", "task_worker"),
        ("Host", "host"),
        ("Policy", "policy"),
        ("BrokerFact", "broker"),
    )
}


def _cell(rows: Any, row: int, column: int, name: str, kind: int) -> Any:
    if kind == lib.MUSTER_COLUMN_TEXT:
        return ffi.string(lib.muster_rows_text(rows, row, column)).decode("utf-8", "replace")
    number = lib.muster_rows_integer(rows, row, column)
    if name.endswith("_ms"):
        unknown = 0 if name.endswith("unix_ms") else -1
        return None if number == unknown else number / 1000
    return bool(number) if kind == lib.MUSTER_COLUMN_BOOLEAN else number


def _take_rows(rows: Any, cls: type[Row]) -> list[Any]:
    columns = [
        (
            at,
            ffi.string(lib.muster_rows_column_name(rows, at)).decode(),
            lib.muster_rows_column_kind(rows, at),
        )
        for at in range(lib.muster_rows_columns(rows))
    ]
    known = {field.name for field in dataclasses.fields(cls)}
    found = []
    for row in range(lib.muster_rows_count(rows)):
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for at, name, kind in columns:
            field = _field_name(name)
            (values if field in known else extra)[field] = _cell(rows, row, at, name, kind)
        found.append(cls(extra=extra, **values))
    return found


class Client(Turns, Closing):
    """Asks a broker ("tcp://host:7700") or its database file (read-only). One thread at a time.

    address: None = the place that the tool `muster` asks, too: what MUSTER_BROKER or MUSTER_DB
    names, else the broker that was started on this host without options, else its database.
    Several brokers' addresses have commas between them: the one that answers is asked.
    timeout: of each call, in seconds.
    Each question returns a list of frozen rows; an unknown job or number gives none.
    Raises BrokerError when there is no such place or nobody answers. Ctrl-C ends each wait.
    """

    _what = "Client"

    def __init__(
        self, address: str | os.PathLike[str] | None = None, *, timeout: float = 5.0
    ) -> None:
        place = encoded("address", address) if address else ffi.NULL
        error = new_error()
        box = ffi.new("muster_client_t **")
        check(
            lib.muster_client_open(place, milliseconds("timeout", timeout), box, error),
            error,
        )
        self._begin_turns()
        self._hooks = _hooks.Hooks()
        self._box: Any = box
        self._pid = os.getpid()
        lib.muster_client_set_interrupted(box[0], lib.muster_py_interrupted, self._hooks.handle)

    @property
    def is_database(self) -> bool:
        """Does it read a file?"""
        return bool(lib.muster_client_is_database(self._client()))

    @property
    def place(self) -> str:
        """The address or path that it asks: the one that was given, or the one that was found."""
        return os.fsdecode(ffi.string(lib.muster_client_place(self._client())))

    def jobs(self, job: str | None = None) -> list[Any]:
        """All jobs, or one."""
        return self._ask("job", lib.muster_client_jobs, _text(job))

    def nodes(self, job: str, generation: int = 0) -> list[Any]:
        """The ranks of a generation, 0 = the newest."""
        return self._ask("node", lib.muster_client_nodes, _text(job), generation)

    def rounds(self, job: str, after: int = 0) -> list[Any]:
        """Save rounds with a greater number than `after`."""
        return self._ask("round", lib.muster_client_rounds, _text(job), after)

    def round(self, job: str, number: int = 0) -> list[Any]:
        """One round, 0 = the newest."""
        return self._ask("round", lib.muster_client_round, _text(job), number)

    def attempts(self, job: str, number: int) -> list[Any]:
        """A round, and the other attempts at the save that it was to make."""
        return self._ask("round", lib.muster_client_attempts, _text(job), number)

    def participants(self, job: str, number: int) -> list[Any]:
        """The ranks of one round."""
        return self._ask("participant", lib.muster_client_participants, _text(job), number)

    def checkpoints(self, job: str, after: int = 0) -> list[Any]:
        """Checkpoints with a greater number than `after`."""
        return self._ask("checkpoint", lib.muster_client_checkpoints, _text(job), after)

    def checkpoint(self, job: str, number: int) -> list[Any]:
        """One checkpoint."""
        return self._ask("checkpoint", lib.muster_client_checkpoint, _text(job), number)

    def latest(self, job: str) -> list[Any]:
        """The checkpoint to resume from."""
        return self._ask("checkpoint", lib.muster_client_latest, _text(job))

    def shards(self, job: str, checkpoint: int) -> list[Any]:
        """The shards of one checkpoint."""
        return self._ask("shard", lib.muster_client_shards, _text(job), checkpoint)

    def files(self, job: str, checkpoint: int) -> list[Any]:
        """The files of one checkpoint."""
        return self._ask("file", lib.muster_client_files, _text(job), checkpoint)

    def events(self, job: str, after: int = 0, kind: str | None = None) -> list[Any]:
        """The events with a greater number than `after`, of one kind or all."""
        return self._ask("event", lib.muster_client_events, _text(job), after, _text(kind))

    def incidents(self, job: str, generation: int) -> list[Any]:
        """What `muster why` tells: errors, losses, withdrawn notices and the end of a generation,
        by time.
        """
        return self._ask("event", lib.muster_client_incidents, _text(job), generation)

    def notices(self, job: str, id: str | None = None, generation: int = 0) -> list[Any]:
        """The notices of one id or all, and of one generation or all (0)."""
        return self._ask("notice", lib.muster_client_notices, _text(job), _text(id), generation)

    def generations(self, job: str, after: int = 0) -> list[Any]:
        """Launches with a greater number than `after`: where each resumed, and why it ended."""
        return self._ask("generation", lib.muster_client_generations, _text(job), after)

    def task_queues(self, job: str | None = None) -> list[Any]:
        """Queues of tasks."""
        return self._ask("task_queue", lib.muster_client_task_queues, _text(job))

    def tasks(self, job: str | None = None, state: str | None = None, number: int = 0) -> list[Any]:
        """The tasks of one queue or all, in one state or all, of one number or all (0)."""
        return self._ask("task", lib.muster_client_tasks, _text(job), _text(state), number)

    def task_workers(self, job: str | None = None) -> list[Any]:
        """The newest process of each worker's index."""
        return self._ask("task_worker", lib.muster_client_task_workers, _text(job))

    def hosts(self, job: str, launch: int = 0) -> list[Any]:
        """The hosts of a launch that hosts formed by themselves (``muster run --nodes``).

        0: those of the newest, and those that wait for the next.
        """
        return self._ask("host", lib.muster_client_hosts, _text(job), launch)

    def policies(self, job: str) -> list[Any]:
        """Which checkpoints stay, and when the broker saves, as the newest launch told it."""
        return self._ask("policy", lib.muster_client_policies, _text(job))

    def broker(self) -> dict[str, float | str]:
        """What the broker tells of its own process: the facts of muster-broker(1) by name.

        Times are in seconds, under names that end in ``_s`` in place of ``_ms``.
        """
        return {
            _field_name(fact.name): fact.text
            or (fact.number / 1000 if fact.name.endswith("_ms") else fact.number)
            for fact in self._ask("broker", lib.muster_client_broker)
        }

    def notify(
        self,
        job: str,
        rank: int,
        *,
        left: float | None = None,
        text: str = "",
        id: str | None = None,
    ) -> int:
        """Tells that a rank will be ended in `left` seconds (None = not known).

        Returns the save round that was opened or joined, 0 = later. A repeated id names the same
        notice.
        """
        name = id or f"python-{uuid.uuid4().hex[:8]}"
        return self._order(
            lib.muster_client_notify, job, name, rank, milliseconds("left", left, -1), text.encode()
        )

    def cancel(self, job: str, id: str) -> None:
        """Withdraws a notice; raises muster.Error when it is too late."""
        self._order(lib.muster_client_cancel, job, id, value=False)

    def save_now(self, job: str, *, id: str | None = None) -> int:
        """Asks for a checkpoint of all ranks, which train on. Returns its save round."""
        return self._order(lib.muster_client_save_now, job, id or f"python-{uuid.uuid4().hex[:8]}")

    def close(self) -> None:
        """Closes it; rows stay valid. May be called again."""
        box = self._take_box()
        if box is not None:
            lib.muster_client_close(box, ffi.NULL)

    def __del__(self) -> None:
        self.close()

    def _client(self) -> Any:
        if self._box is None:
            raise wrong("this muster.Client is closed; open another")
        if self._pid != os.getpid():
            raise wrong(
                "this muster.Client is the parent's; open another in the forked process"
            )
        return self._box[0]

    def _ask(self, kind: str, call: Any, *arguments: Any) -> list[Any]:
        rows = ffi.new("muster_rows_t **")
        self._finish(call, *arguments, rows)
        try:
            return _take_rows(rows[0], KINDS[kind])
        finally:
            lib.muster_rows_destroy(rows)

    def _order(self, call: Any, job: str, id: str, *arguments: Any, value: bool = True) -> int:
        given = ffi.new("int64_t *")
        place = (given,) if value else ()
        self._finish(call, _text(job), id.encode(), *arguments, *place)
        return int(given[0])

    def _finish(self, call: Any, *arguments: Any) -> None:
        error = new_error()
        status = self._alone(call, self._client(), *arguments, error)
        _hooks.settle(self._hooks, status, error)


def _text(value: str | None) -> Any:
    return ffi.NULL if value is None else encoded("this word", value)
