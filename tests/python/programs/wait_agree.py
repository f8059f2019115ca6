"""Constructs a manager of Orbax' on two processes: wait_agree.py PATH

The first launch saves a step. In the second one rank 0 sleeps before both agree on that step, and
rank 1 tells what Ctrl-C does.
"""

import os
import sys
import time

import jax
import numpy
import orbax.checkpoint as ocp

import muster.orbax


def read_pointer(path):
    print("rank 0 sleeps", flush=True)
    time.sleep(600)


muster.orbax.read_pointer = read_pointer  # rank 0 alone calls it
jax.distributed.initialize()
try:
    with muster.orbax.CheckpointManager(sys.argv[1]) as mngr:
        mngr.save(0, args=ocp.args.StandardSave({"w": numpy.zeros(4)}))
except KeyboardInterrupt:
    print(f"KeyboardInterrupt at {time.monotonic():.3f}", flush=True)
    os._exit(130)  # JAX waits for the other process, else
