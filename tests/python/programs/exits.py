"""Ends in some way at some moment, with a node that saves all the time: exits.py KIND PHASE SECONDS

It ends SECONDS after the PHASE began: open, restore, step or save. It tells where it was then.
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

kind, meant, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
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
state = muster.TrainingState(w=numpy.zeros(200000))
threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start()
node, now = None, ""


class End(BaseException):
    """The program goes to its end."""


def ends(*_):
    """On the main thread, in the middle of what it does."""
    tells()
    if kind == "exit":
        sys.exit(3)
    if kind == "raise":
        raise RuntimeError("on purpose")
    if kind == "notify" and node is not None:
        node.notify(left=0, text="now")
    raise End


def ends_from_a_thread():
    tells()
    if kind == "preempt":
        opened.wait()
        node.notify(left=0, text="now")
    else:
        os.kill(os.getpid(), {"interrupt": signal.SIGINT, "term": signal.SIGTERM}[kind])


def tells():
    saves = node is not None and node.is_saving
    os.write(1, f"in {'save' if saves else now}\n".encode())


def begins(phase):
    global now, meant
    if phase != "save":
        now = phase
    if phase != meant:
        return
    meant = ""  # once
    if kind in ("preempt", "interrupt", "term"):
        timer.start()
    else:
        signal.setitimer(signal.ITIMER_REAL, seconds)


signal.signal(signal.SIGALRM, ends)
timer, opened = threading.Timer(seconds, ends_from_a_thread), threading.Event()
timer.daemon = True
try:
    begins("open")
    node = muster.Node(state=state, save_every=3, save_behind=kind != "raise", restore_later=True)
    os.write(1, b"opened\n")
    opened.set()
    begins("restore")
    node.restore()
    begins("step")
    while True:
        state["w"] += 1
        beside()
        node.step()
        if node.is_saving or (kind == "raise" and node.steps_done % 3 == 2):
            begins("save")
        time.sleep(0.001)
except End:
    pass
if kind == "forget":
    del node
if kind == "leak" and node is not None:  # nothing but muster's own atexit function closes it
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(node))
