"""What a boundary costs, beside an empty call of the same binding, and beside the bare one without
a method around it: boundary.py COUNT [manager]

manager: as a Checkpointer asks, by a Manager's should_save.
"""

import json
import sys
import tempfile
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
    nothing, null = empty, ffi.NULL
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
    """A method around the bare call: the least that an object of Python's can cost."""

    def __init__(self, argument):
        self._argument = argument

    def step(self):
        if empty(self._argument) is not None:
            raise ValueError


empty = lib.muster_node_release
kind = muster.Manager if "manager" in sys.argv else muster.Node
state = muster.TrainingState(w=numpy.zeros(4))
with tempfile.TemporaryDirectory() as folder, kind(state=state, directory=folder) as node:
    step = getattr(node, "step", None) or (lambda: node.should_save(node.steps_done))
    if kind is muster.Manager:
        node.restore()
    plain, cost, bare = seconds(Empty(ffi.NULL).step, step)
    told = {"bare_us": bare * 1e6, "empty_us": plain * 1e6, "step_us": cost * 1e6}
    print(json.dumps({**told, "ratio": cost / plain, "ratio_bare": cost / bare}))
