"""Client: asks a broker, or its database, about jobs, and gives orders to jobs."""

from __future__ import annotations

import os
import uuid
from typing import Any, TypeVar

from . import _hooks
from ._closing import Closing, Turns
from ._errors import check, encoded, integer, milliseconds, new_error, parents, wrong
from ._native import ffi, lib
from ._rows import (
    BrokerFact,
    Checkpoint,
    Event,
    File,
    Generation,
    Host,
    Job,
    NodeRow,
    Notice,
    Participant,
    Policy,
    Round,
    Row,
    Shard,
    Task,
    TaskQueue,
    TaskWorker,
    field_name,
    take_rows,
)

_Kind = TypeVar("_Kind", bound=Row)


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

    def jobs(self, job: str | None = None) -> list[Job]:
        """All jobs, or one."""
        return self._ask(Job, lib.muster_client_jobs, _text("job", job))

    def nodes(self, job: str, generation: int = 0) -> list[NodeRow]:
        """The ranks of a generation, 0 = the newest."""
        return self._ask(
            NodeRow, lib.muster_client_nodes, _text("job", job), _number("generation", generation)
        )

    def rounds(self, job: str, after: int = 0) -> list[Round]:
        """Save rounds with a greater number than `after`."""
        return self._ask(
            Round, lib.muster_client_rounds, _text("job", job), _number("after", after)
        )

    def round(self, job: str, number: int = 0) -> list[Round]:
        """One round, 0 = the newest."""
        return self._ask(
            Round, lib.muster_client_round, _text("job", job), _number("number", number)
        )

    def attempts(self, job: str, number: int) -> list[Round]:
        """A round, and the other attempts at the save that it was to make."""
        return self._ask(
            Round, lib.muster_client_attempts, _text("job", job), _number("number", number)
        )

    def participants(self, job: str, number: int) -> list[Participant]:
        """The ranks of one round."""
        return self._ask(
            Participant,
            lib.muster_client_participants,
            _text("job", job),
            _number("number", number),
        )

    def checkpoints(self, job: str, after: int = 0) -> list[Checkpoint]:
        """Checkpoints with a greater number than `after`."""
        return self._ask(
            Checkpoint, lib.muster_client_checkpoints, _text("job", job), _number("after", after)
        )

    def checkpoint(self, job: str, number: int) -> list[Checkpoint]:
        """One checkpoint."""
        return self._ask(
            Checkpoint, lib.muster_client_checkpoint, _text("job", job), _number("number", number)
        )

    def latest(self, job: str) -> list[Checkpoint]:
        """The checkpoint to resume from."""
        return self._ask(Checkpoint, lib.muster_client_latest, _text("job", job))

    def shards(self, job: str, checkpoint: int) -> list[Shard]:
        """The shards of one checkpoint."""
        return self._ask(
            Shard, lib.muster_client_shards, _text("job", job), _number("checkpoint", checkpoint)
        )

    def files(self, job: str, checkpoint: int) -> list[File]:
        """The files of one checkpoint."""
        return self._ask(
            File, lib.muster_client_files, _text("job", job), _number("checkpoint", checkpoint)
        )

    def events(self, job: str, after: int = 0, kind: str | None = None) -> list[Event]:
        """The events with a greater number than `after`, of one kind or all."""
        return self._ask(
            Event,
            lib.muster_client_events,
            _text("job", job),
            _number("after", after),
            _text("kind", kind),
        )

    def incidents(self, job: str, generation: int) -> list[Event]:
        """What `muster why` tells: errors, losses, withdrawn notices and the end of a generation,
        by time.
        """
        return self._ask(
            Event, lib.muster_client_incidents, _text("job", job), _number("generation", generation)
        )

    def notices(self, job: str, id: str | None = None, generation: int = 0) -> list[Notice]:
        """The notices of one id or all, and of one generation or all (0)."""
        return self._ask(
            Notice,
            lib.muster_client_notices,
            _text("job", job),
            _text("id", id),
            _number("generation", generation),
        )

    def generations(self, job: str, after: int = 0) -> list[Generation]:
        """Launches with a greater number than `after`: where each resumed, and why it ended."""
        return self._ask(
            Generation, lib.muster_client_generations, _text("job", job), _number("after", after)
        )

    def task_queues(self, job: str | None = None) -> list[TaskQueue]:
        """Queues of tasks; None = of all jobs."""
        return self._ask(TaskQueue, lib.muster_client_task_queues, _text("job", job))

    def tasks(self, job: str, state: str | None = None, number: int = 0) -> list[Task]:
        """The tasks of a job's queues, in one state or all, of one number or all (0)."""
        return self._ask(
            Task,
            lib.muster_client_tasks,
            _text("job", job),
            _text("state", state),
            _number("number", number),
        )

    def task_workers(self, job: str) -> list[TaskWorker]:
        """The newest process of each worker's index."""
        return self._ask(TaskWorker, lib.muster_client_task_workers, _text("job", job))

    def hosts(self, job: str, launch: int = 0) -> list[Host]:
        """The hosts of a launch that hosts formed by themselves (``muster run --nodes``).

        0: those of the newest, and those that wait for the next.
        """
        return self._ask(
            Host, lib.muster_client_hosts, _text("job", job), _number("launch", launch)
        )

    def policies(self, job: str) -> list[Policy]:
        """Which checkpoints stay, and when the broker saves, as the newest launch told it."""
        return self._ask(Policy, lib.muster_client_policies, _text("job", job))

    def broker(self) -> dict[str, float | str]:
        """What the broker tells of its own process: the facts of muster-broker(1) by name.

        Times are in seconds, under names that end in ``_s`` in place of ``_ms``.
        """
        return {
            field_name(fact.name): fact.text
            or (fact.number / 1000 if fact.name.endswith("_ms") else fact.number)
            for fact in self._ask(BrokerFact, lib.muster_client_broker)
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

        Returns the save round that was opened or joined, 0 = later. If you may repeat the call, give
        an id: the same id names the same notice. Raises NotFoundError for a job or rank that is not
        there. After a BrokerError it is not known whether the broker took the notice.
        """
        name = id or f"python-{uuid.uuid4().hex[:8]}"
        return self._order(
            lib.muster_client_notify,
            job,
            name,
            integer("rank", rank),
            milliseconds("left", left, -1),
            encoded("text", text),
        )

    def cancel(self, job: str, id: str) -> None:
        """Withdraws a notice. Raises NotFoundError for one that is not there, and muster.Error when
        it is too late: the save or the end still comes.
        """
        self._order(lib.muster_client_cancel, job, id, value=False)

    def save_now(self, job: str, *, id: str | None = None) -> int:
        """Asks for a checkpoint of all ranks, which train on. Returns its save round. id and errors:
        as of notify.
        """
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
            raise parents("Client")
        return self._box[0]

    def _ask(self, kind: type[_Kind], call: Any, *arguments: Any) -> list[_Kind]:
        rows = ffi.new("muster_rows_t **")
        self._finish(call, *arguments, rows)
        try:
            return take_rows(rows[0], kind)
        finally:
            lib.muster_rows_destroy(rows)

    def _order(self, call: Any, job: str, id: str, *arguments: Any, value: bool = True) -> int:
        given = ffi.new("int64_t *")
        place = (given,) if value else ()
        self._finish(call, _text("job", job), encoded("id", id), *arguments, *place)
        return int(given[0])

    def _finish(self, call: Any, *arguments: Any) -> None:
        error = new_error()
        status = self._alone(call, self._client(), *arguments, error)
        _hooks.settle(self._hooks, status, error)


def _text(name: str, value: str | None) -> Any:
    return ffi.NULL if value is None else encoded(name, value)


def _number(name: str, value: int) -> int:
    return integer(name, value, bits=62)
