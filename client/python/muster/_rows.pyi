"""The fields of each kind of row, as <muster/client.h> has them; a test compares both."""

import dataclasses
from typing import Any, TypeVar

@dataclasses.dataclass(frozen=True)
class Row:
    extra: dict[str, Any]

@dataclasses.dataclass(frozen=True, kw_only=True)
class Job(Row):
    job: str
    state: str
    state_unix_s: float | None
    generation: int
    world_size: int
    layout: str
    checkpoint_dir: str
    nodes_live: int
    step: int
    steps_executed: int
    seq: int
    open_round: int
    open_round_state: str
    open_round_cause: str
    open_round_waits: int
    notices_active: int
    newest_checkpoint: int
    newest_step: int
    newest_path: str
    newest_unix_s: float | None
    resume_checkpoint: int
    resume_step: int
    error_rank: int
    error_code: int
    error_text: str
    end_status: int
    end_text: str
    created_unix_s: float | None
    opened_unix_s: float | None
    started_unix_s: float | None
    ended_unix_s: float | None
    step_p95_s: float | None
    save_p95_s: float | None
    freeze_unix_s: float | None
    plan: str
    unknown_ranks: int

@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeRow(Row):
    generation: int
    role: str
    rank: int
    host: str
    pid: int
    incarnation: str
    state: str
    begun: int
    done: int
    lag: int
    phase: str
    step_p95_s: float | None
    applied_seq: int
    heard_unix_s: float | None
    acknowledgement: str
    leave_why: str
    exit_code: int
    joined_unix_s: float | None
    ended_unix_s: float | None
    sources: str
    stuck_unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Round(Row):
    round: int
    generation: int
    attempt: int
    cause: str
    state: str
    step: int
    aborted_steps: bool
    culprit_rank: int
    reason_code: int
    reason: str
    final: bool
    opened_unix_s: float | None
    decided_unix_s: float | None
    captured_unix_s: float | None
    ended_unix_s: float | None
    deadline_unix_s: float | None
    margin_s: float | None
    members: int
    reported: int
    captured: int
    writers: int
    saved: int
    failed: int
    plan: str

@dataclasses.dataclass(frozen=True, kw_only=True)
class Participant(Row):
    round: int
    rank: int
    host: str
    pid: int
    incarnation: str
    writer: bool
    begun: int
    done: int
    reported_s: float | None
    at_step_s: float | None
    captured_s: float | None
    saved_s: float | None
    save_s: float | None
    failed: str
    node_state: str

@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint(Row):
    checkpoint: int
    generation: int
    step: int
    state: str
    cause: str
    layout: str
    world_size: int
    shards_required: int
    shards: int
    bytes: int
    path: str
    in_place: bool
    epoch: int
    step_in_epoch: int
    data_position: int
    pinned: bool
    metrics: str
    save_s: float | None
    committed_unix_s: float | None
    blocked_s: float | None
    waited_s: float | None
    total_s: float | None
    bytes_per_s: int
    custom: str
    pins: str

@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard(Row):
    checkpoint: int
    rank: int
    host: str
    incarnation: str
    files: int
    bytes: int
    save_s: float | None
    blocked_s: float | None
    saved_unix_s: float | None
    waited_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class File(Row):
    checkpoint: int
    rank: int
    path: str
    bytes: int
    checksum: str

@dataclasses.dataclass(frozen=True, kw_only=True)
class Event(Row):
    seq: int
    generation: int
    kind: str
    round: int
    rank: int
    step: int
    text: str
    unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Notice(Row):
    id: str
    generation: int
    rank: int
    host: str
    pid: int
    by_operator: bool
    kind: str
    source: str
    state: str
    cancellable: bool
    left_s: float | None
    left_from: str
    text: str
    round: int
    received_unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Generation(Row):
    generation: int
    state: str
    world_size: int
    layout: str
    checkpoint_dir: str
    nodes: int
    step: int
    resume_checkpoint: int
    resume_step: int
    resume_ready: bool
    fallback: bool
    end_status: int
    end_text: str
    error_rank: int
    error_code: int
    error_text: str
    opened_unix_s: float | None
    started_unix_s: float | None
    ended_unix_s: float | None
    unknown_ranks: int
    unknown_unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskQueue(Row):
    queue_name: str
    job: str
    queue: int
    taken: int
    ended: int
    queued: int
    leased: int
    done: int
    failed: int
    cancelled: int
    workers: int
    max_queued: int
    max_attempts: int
    error_pending: bool
    error_number: int
    error_status: int
    error_code: int
    error_text: str
    raised: int
    created_unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(Row):
    queue_name: str
    number: int
    state: str
    function: str
    attempt: int
    losses: int
    worker_index: int
    worker_host: str
    worker_pid: int
    worker_state: str
    status: int
    code: int
    text: str
    bytes: int
    timeout_s: float | None
    scheduled_unix_s: float | None
    leased_unix_s: float | None
    ended_unix_s: float | None
    key: int

@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskWorker(Row):
    worker_index: int
    host: str
    pid: int
    state: str
    slots: int
    takes: int
    held: int
    holds: str
    unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Host(Row):
    launch: int
    place: int
    host: str
    address: str
    port: int
    first_rank: int
    ranks: int
    id: str
    state: str
    state_unix_s: float | None

@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy(Row):
    job: str
    generation: int
    keep: str
    save: str
    trash: str

@dataclasses.dataclass(frozen=True, kw_only=True)
class BrokerFact(Row):
    name: str
    number: int
    text: str

_Kind = TypeVar("_Kind", bound=Row)

KINDS: dict[str, type[Row]]

def field_name(column: str) -> str: ...
def take_rows(rows: Any, cls: type[_Kind]) -> list[_Kind]: ...
