"""The rows of a client's answers. Their classes are made out of the header's structures, so they
cannot differ from them; _rows.pyi names the fields for type checkers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ._native import ffi, lib


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of an answer. It has the fields of the C structure of its kind, in <muster/client.h>.
    Times are in seconds: `save_ms` there is `save_s` here, and None = not known.

    extra: columns of a newer broker's answer that this class has no field for.
    """

    extra: dict[str, Any]


def field_name(column: str) -> str:
    return column[:-3] + "_s" if column.endswith("_ms") else column


def _type_of(column: str, c_type: Any) -> Any:
    if column.endswith("_ms"):
        return float | None
    return {"pointer": str, "primitive": int}[c_type.kind] if c_type is not _BOOL else bool


_BOOL = ffi.typeof("bool")


def _row_class(kind: str, c_name: str) -> type[Row]:
    """Builds the frozen dataclass of one C structure."""
    members = [
        (field_name(name), _type_of(name, member.type))
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


def take_rows(rows: Any, cls: type[Row]) -> list[Any]:
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
            field = field_name(name)
            (values if field in known else extra)[field] = _cell(rows, row, at, name, kind)
        found.append(cls(extra=extra, **values))
    return found


globals().update({row.__name__: row for row in KINDS.values()})
