"""Ends in some way at some moment, with a node that saves all the time: exits.py KIND SECONDS

LOGGING: it has set up logging, so a thread of Python's reads muster's log.
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
state = muster.TrainingState(w=numpy.zeros(1000))
threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start()
node = muster.Node(state=state, save_every=3, save_behind=kind != "raise")
end = time.monotonic() + seconds
while time.monotonic() < end:
    state["w"] += 1
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
