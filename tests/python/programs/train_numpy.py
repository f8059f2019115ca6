"""Each rank trains on its own data with its own random numbers, and writes what came of it.

    train_numpy.py STEPS SECONDS_A_STEP OUTPUT [late-handler | two-handlers | signal-at-once]

signal-at-once: rank 1 sets a handler of its own in the middle of the training, and gets SIGTERM in
the same moment.

Only the first launch, or the first SLOW_LAUNCHES, take their time, so that they are still there
when they are preempted.
"""

import ctypes
import hashlib
import os
import pathlib
import pickle
import signal
import sys
import time

import numpy

import muster

steps, seconds, output = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
mode = sys.argv[4] if len(sys.argv) > 4 else ""
slow_launches = int(os.environ.get("SLOW_LAUNCHES", "1"))


def train(node, state, random, step):
    state["w"] -= 0.01 * (state["w"] - random.standard_normal(state["w"].shape))
    state["moment"][...] = 0.9 * state["moment"] + state["w"].astype("float32") * (node.rank + 1)
    time.sleep(seconds if node.generation <= slow_launches else 0)


def owner():
    """The address of the C function that SIGTERM calls: the first word of a struct sigaction."""
    action = (ctypes.c_void_p * 32)()
    assert ctypes.CDLL(None).sigaction(signal.SIGTERM, None, action) == 0
    return action[0]


class Fight:
    """Two frameworks that take SIGTERM from muster, and from one another, six times in all."""

    def __init__(self):
        self.muster = owner()
        self.times = 0

    def go_on(self):
        if owner() != self.muster or self.times > 6:
            return
        self.times += 1
        name = "first" if self.times % 2 else "second"
        if self.times <= 6:
            signal.signal(signal.SIGTERM, lambda *_: print(f"the handler of the {name} ran"))
        else:
            print("muster has SIGTERM again", flush=True)


state = muster.TrainingState(w=numpy.zeros((4, 8)), moment=numpy.zeros((4, 8), "float32"))
random = numpy.random.Generator(numpy.random.PCG64(7))
bits = bytearray(4096)  # the generator's own state
state.add_bytes("random", bits)


def pack():
    data = pickle.dumps(random.bit_generator.state)
    bits[: len(data)] = data


pack()
with muster.Node(state=state, layout="sharded") as node:
    if node.resumed_step:
        random.bit_generator.state = pickle.loads(bytes(bits))
    else:
        random = numpy.random.Generator(numpy.random.PCG64(node.rank))
        pack()
    print(f"rank {node.rank} begins at {node.resumed_step}")
    if mode == "late-handler":
        signal.signal(signal.SIGTERM, lambda *_: print("the late handler ran"))
    fight = Fight() if mode == "two-handlers" and not node.resumed_step else None
    for step in range(node.steps_done, steps):
        train(node, state, random, step)
        pack()
        if mode == "signal-at-once" and node.generation <= slow_launches and node.rank == 1:
            if step == node.resumed_step + 3:
                signal.signal(signal.SIGTERM, lambda *_: print("the late handler ran"))
                os.kill(os.getpid(), signal.SIGTERM)
        if fight is not None:
            fight.go_on()
        node.step()
    digest = hashlib.sha256(
        state["w"].tobytes() + state["moment"].tobytes() + bytes(bits)
    ).hexdigest()
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{node.rank}").write_text(digest)
