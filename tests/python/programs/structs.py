"""Structures that the package and its library may know in two sizes: structs.py

What the library fills has the package's values, in arrays too; no byte behind the package's size is
written, and a member that only one of them knows is empty.
"""

import numpy

import muster
from muster._native import ffi, lib

TAIL = 64


def filled(kind, call):
    """What call(pointer, size) writes into a structure with something else behind it."""
    size = ffi.sizeof(kind)
    memory = ffi.new("char[]", b"\x00" * size + b"\x5a" * TAIL)
    call(ffi.cast(f"{kind} *", memory), size)
    assert ffi.buffer(memory)[size : size + TAIL] == b"\x5a" * TAIL, kind
    alive.append(memory)
    return whole(ffi.cast(f"{kind} *", memory)[0])


def whole(struct):
    if hasattr(struct, "newer"):  # a package that is newer than its library
        assert list(struct.newer) == [0, 0, 0, 0], struct
    return struct


alive, contexts = [], []


def save(context):
    contexts.append(context)
    (context.directory / "w").write_bytes(w.tobytes())


def restore(context):
    contexts.append(context)
    w[:] = numpy.frombuffer((context.directory / "w").read_bytes())


w = numpy.zeros(4)
options = {"save_fn": save, "restore_fn": restore, "save": [muster.SaveEverySteps(1)]}
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
print("all values are as the package knows them")
