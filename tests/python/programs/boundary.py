"""What a boundary costs, beside an empty call of the same binding, and beside the bare one without
a method around it: boundary.py COUNT [manager]

manager: as a Checkpointer asks, by a Manager's should_save.
"""

import json
import sys
import time

import numpy

import muster
from muster._native import ffi, lib

count = int(sys.argv[1])


def seconds(*calls):
    """The fastest of many short turns of each, which take turns: load comes and goes. The last is a
    bare call of C that does nothing, without a frame of Python's.
    """
    best = [float("inf")] * (len(calls) + 1)
    nothing, null = lib.muster_node_release, ffi.NULL
    for _ in range(200):
        for at, call in enumerate(calls):
            began = time.perf_counter()
            for _ in range(count):
                call()
            best[at] = min(best[at], (time.perf_counter() - began) / count)
        began = time.perf_counter()
        for _ in range(count):
            nothing(null)
        best[-1] = min(best[-1], (time.perf_counter() - began) / count)
    return best


class Empty:
    """As thin as Node.step, around a call that takes pointers and does nothing."""

    def __init__(self, handle):
        self._c = handle
        self._raised = None

    def step(self):
        code = empty(self._c, NULL, NULL, NULL)
        if code or self._raised is not None:
            raise ValueError


NULL, empty = ffi.NULL, lib.muster_node_position
kind = muster.Manager if "manager" in sys.argv else muster.Node
with kind(state=muster.TrainingState(w=numpy.zeros(4))) as node:
    step = getattr(node, "step", None) or (lambda: node.should_save(node.steps_done))
    if kind is muster.Manager:
        node.restore()
    plain, cost, bare = seconds(Empty(node._c).step, step)
    told = {"bare_us": bare * 1e6, "empty_us": plain * 1e6, "step_us": cost * 1e6}
    print(json.dumps({**told, "ratio": cost / plain, "ratio_bare": cost / bare}))
