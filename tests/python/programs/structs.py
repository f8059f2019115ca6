"""Structures that the package and its library may know in two sizes: structs.py

What the library fills has the package's values, in arrays too; no byte behind the package's size is
written, and a member that only one of them knows is empty.
"""

import os
import threading
import time

import numpy

import muster
from muster import _client, _rows
from muster._errors import check, new_error
from muster._native import ffi, lib

TAIL = 64


def filled(kind, call):
    """What call(pointer, size) writes into a structure with something else behind it."""
    size = ffi.sizeof(kind)
    memory = ffi.new("char[]", b"\x5a" * (size + TAIL))
    call(ffi.cast(f"{kind} *", memory), size)
    assert ffi.buffer(memory)[size : size + TAIL] == b"\x5a" * TAIL, kind
    alive.append(memory)
    return whole(ffi.cast(f"{kind} *", memory)[0])


def whole(struct):
    if hasattr(struct, "newer"):  # a package that is newer than its library
        assert list(struct.newer) == [0, 0, 0, 0], struct
    return struct


alive, contexts = [], []
kinds_seen = set()


def take_rows(rows, cls, take=_client.take_rows):
    """The rows as the package takes them, column by column; their array has the same values."""
    name = next(name for name, each in _rows.KINDS.items() if each is cls)
    kind, struct = getattr(lib, f"MUSTER_ROW_{name.upper()}"), f"struct muster_{name}_row"
    array = lib.muster_rows_array(rows, kind, ffi.sizeof(struct))
    array = ffi.cast(f"{struct} *", array)
    for at in range(lib.muster_rows_count(rows)):
        kinds_seen.add(name)
        for column in range(lib.muster_rows_columns(rows)):
            title = ffi.string(lib.muster_rows_column_name(rows, column)).decode()
            value = getattr(array[at], title)
            if isinstance(value, ffi.CData):
                text = lib.muster_rows_text(rows, at, column)
                assert ffi.string(value) == ffi.string(text), (name, title)
            else:
                assert value == lib.muster_rows_integer(rows, at, column), (name, title)
    return take(rows, cls)


_client.take_rows = take_rows


def save(context):
    contexts.append(context)
    (context.directory / "w").write_bytes(w.tobytes())


def restore(context):
    contexts.append(context)
    w[:] = numpy.frombuffer((context.directory / "w").read_bytes())


w = numpy.zeros(4)
options = {"save_fn": save, "restore_fn": restore, "save": [muster.SaveEverySteps(1)]}
options["keep"] = [muster.KeepLatest(9)]
with muster.Manager(**options) as manager:
    assert manager.restore() is None
    for step in range(3):
        w += 1
        assert manager.save(step, metrics={"loss": 1.0 / (step + 1)}, metadata={"at": step}, epoch=7)
    found, count = ffi.new("struct muster_checkpoint_info const **"), ffi.new("size_t *")
    info_size = ffi.sizeof("struct muster_checkpoint_info")
    manager._ask(lib.muster_manager_all_steps, found, count, info_size)
    assert count[0] == 3 and [whole(found[0][at]).step for at in range(3)] == [0, 1, 2]
    infos = manager.all_steps()
    assert [info.metrics["loss"] for info in infos] == [1.0, 0.5, 1.0 / 3]
    assert [info.epoch for info in infos] == [7] * 3 and manager.metadata(1).metadata == {"at": 1}
    node = lib.muster_manager_node(manager._manager())
    told = filled("struct muster_announced", lambda at, size: lib.muster_node_announced(node, at, size))
    assert (told.rank, told.left_ms, told.save_ms) == (-1, -1, -1)
    queue, kinds = manager._hooks.events._queue, (1 << 31) - 1
    event = filled(
        "struct muster_event",
        lambda at, size: lib.muster_events_next(queue, kinds, 10000, at, size, ffi.NULL),
    )
    assert event.kind != 0

with muster.Manager(**options) as manager:
    restored = filled(
        "struct muster_restored",
        lambda at, size: manager._ask(lib.muster_manager_restore, lib.MUSTER_STEP_LATEST, at, size),
    )
    assert (restored.step, restored.epoch, restored.fell_back) == (2, 7, False)
    assert w.tolist() == [3.0] * 4

assert [(context.step, context.rank, context.world_size) for context in contexts] == [
    (1, 0, 1), (2, 0, 1), (3, 0, 1), (3, 0, 1),
], contexts
assert contexts[-1].saved_world_size == 1 and contexts[-1].checkpoint_directory.is_dir()
for name in (
    *("node_options", "manager_options", "save_request", "policies", "training_state_options"),
    *("worker_options", "coordinator_options", "call", "read_options"),
):
    made = filled(f"struct muster_{name}", getattr(lib, f"muster_{name}_init"))
    assert made.struct_size == ffi.sizeof(f"struct muster_{name}"), name

error = new_error()
told = filled(
    "struct muster_identity",
    lambda at, size: check(lib.muster_identity_read(at, size, error), error),
)
assert (told.rank, told.world_size, ffi.string(told.job)) == (0, 1, b"structs")

training = ffi.new("struct muster_training_state_options *")
lib.muster_training_state_options_init(training, ffi.sizeof(training[0]))
node, directory = ffi.new("struct muster_node_options *"), ffi.new("char[]", b"back-ups")
lib.muster_node_options_init(node, ffi.sizeof(node[0]))
held = muster.TrainingState(w=w)
node.state = held._box[0]
training.node, training.backup_dir = node, directory
training.save_freq, training.save_freq_batches = lib.MUSTER_SAVE_FREQ_BATCHES, 7
back_ups = ffi.new("muster_training_state_t **")
check(lib.muster_training_state_open(training, back_ups, error), error)
check(lib.muster_training_state_close(back_ups, 0, error), error)
training.save_freq_batches = 0  # what the library reads is what was given
assert lib.muster_training_state_open(training, back_ups, error) == lib.MUSTER_E_ARGUMENT

asked = threading.Event()
functions = {
    "adds": lambda task: str(task.value() + int(task.args)).encode(),
    "ends": lambda task: str(asked.wait(50)).encode(),
}
with muster.Worker(functions, values={"base": lambda task: int(task.args)}, prefetch=3) as worker:
    serves = threading.Thread(target=worker.serve)
    serves.start()
    with muster.Coordinator("queue", fresh=True, max_queued=4, max_attempts=2) as coordinator:
        base = coordinator.per_worker("base", b"30")
        values = [
            coordinator.schedule("adds", str(at).encode(), per_worker=[base], task_timeout=50)
            for at in range(12)
        ]
        assert [value.fetch(50) for value in values] == [str(30 + at).encode() for at in range(12)]
        last = coordinator.schedule("ends", b"")
        with muster.Client() as client:
            while not client.tasks("structs", state="leased"):
                time.sleep(0.01)  # until the worker has it
            assert client.task_queues() and client.task_workers("structs")
        asked.set()
        assert last.fetch(50) == b"True"
    worker.stop()
    serves.join()

own = {"w": numpy.arange(6.0), "rank": numpy.array([7])}
apart = {"job": "read", "directory": os.environ["MUSTER_CHECKPOINT_DIR"] + "-read"}
with muster.Node(
    state=muster.TrainingState(own), layout="sharded", save_every=1, **apart
) as node:
    node.step()
    node.step()
    with muster.Client() as client:
        node.wait_until_saved(30)
        client.notify("read", 0, left=7200)
        while not (newest := client.latest("read")) or not newest[0].in_place:
            pass  # its final name comes behind the commit
for rank in (None, 0):
    checkpoint = muster.read(newest[0].path, rank=rank)
    assert checkpoint["w"].tolist() == own["w"].tolist() and checkpoint["rank"][0] == 7
    assert checkpoint.step == newest[0].step
with muster.Client() as client:
    number = newest[0].checkpoint
    client.jobs(), client.nodes("read"), client.rounds("read"), client.participants("read", 1)
    client.shards("read", number), client.files("read", number), client.events("read")
    client.generations("read"), client.notices("read"), client.policies("structs"), client.broker()
missing = set(_rows.KINDS) - kinds_seen
assert missing == {"host"}, missing  # only `muster run --nodes` makes one
print("all values are as the package knows them")
