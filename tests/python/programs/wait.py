"""Blocks in one call of muster's until Ctrl-C: wait.py open | step | manager | client"""

import sys
import time

import muster

what = sys.argv[1]
began = time.monotonic()
try:
    if what == "client":
        client = muster.Client(timeout=120)
        print("blocks")
        client.jobs()
    if what == "open":
        print("blocks")
    state = muster.TrainingState()
    if what == "manager":
        with muster.Manager(state=state) as manager:
            print("blocks")
            manager.restore()  # rank 1 never comes
    with muster.Node(state=state, connect_timeout=120) as node:
        print("blocks")
        if what == "step":
            node.step()
except KeyboardInterrupt as interrupt:
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {interrupt.__notes__}")
    sys.exit(130)
