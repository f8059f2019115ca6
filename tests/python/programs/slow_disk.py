"""A state of 300 MiB on a disk that takes 15 s for it, by slow_disk.c:
slow_disk.py make | restore | node | read | save | alone

make saves it at step 0, on a fast disk. The others are there to be interrupted: save in the rank
SLOW_RANK alone. alone saves without a broker. node restores by a Node, restore by a Manager.
"""

import ctypes
import os
import sys
import time

import numpy

import muster

what, began = sys.argv[1], time.monotonic()


def disk_is_slow():
    ctypes.c_int.in_dll(ctypes.CDLL(os.environ["LD_PRELOAD"]), "slow_disk_ms").value = 50  # a MiB
    print("blocks", flush=True)


try:
    state = muster.TrainingState(w=numpy.ones(300 << 17))
    if what == "read":
        saved = muster.read("0")
        disk_is_slow()
        saved.load(state)
    if what == "node":
        with muster.Node(state=state, layout="sharded", restore_later=True) as node:
            disk_is_slow()
            node.restore()
    options = {"offline_ok": True, "connect_timeout": 0.1} if what == "alone" else {}
    with muster.Manager(state=state, layout="sharded", **options) as manager:
        if what == "restore":
            disk_is_slow()
        manager.restore()
        if what == "make":
            manager.save(0, force=True)
        elif os.environ.get("SLOW_RANK", "0") == os.environ["MUSTER_RANK"]:
            disk_is_slow()
        if what in ("save", "alone"):
            manager.save(1, force=True)
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
