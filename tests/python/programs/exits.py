"""Ends in some way at some moment, with a node that saves all the time: exits.py KIND SECONDS

LOGGING: it has set up logging, so a thread of Python's reads muster's log.
BESIDE: a framework whose threads compute all the time, torch or jax.
"""

import ctypes
import logging
import os
import signal
import sys
import threading
import time

import numpy

import muster

kind, seconds = sys.argv[1], float(sys.argv[2])
if "LOGGING" in os.environ:
    logging.basicConfig(level=logging.DEBUG)


def beside_torch():
    import torch

    class Data(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield torch.randn(200, 200)

    batches = iter(torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2))
    return lambda: next(batches) @ torch.ones(200, 200)


def beside_jax():
    import jax

    ones = jax.numpy.ones((500, 500))
    return jax.jit(lambda: ones @ ones @ ones)  # nobody awaits its results


beside = {"torch": beside_torch, "jax": beside_jax}.get(
    os.environ.get("BESIDE"), lambda: lambda: None
)()
state = muster.TrainingState(w=numpy.zeros(1000))
threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start()
node = muster.Node(state=state, save_every=3, save_behind=kind != "raise")
end = time.monotonic() + seconds
while time.monotonic() < end:
    state["w"] += 1
    beside()
    node.step()
    time.sleep(0.001)
if kind == "close":
    node.close()
if kind == "exit":
    sys.exit(3)
if kind == "raise":
    raise RuntimeError("on purpose")
if kind == "interrupt":
    os.kill(os.getpid(), signal.SIGINT)
    node.step()
if kind == "notify":
    node.notify(left=0, text="now")
if kind == "forget":
    del node
if kind == "leak":  # nothing but muster's own atexit function closes it
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(node))
