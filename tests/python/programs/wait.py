"""Blocks in one call of muster's until Ctrl-C: wait.py open | step | client | close"""

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
    with muster.Node(state=muster.TrainingState(), connect_timeout=120) as node:
        print("blocks")
        if what == "step":
            node.step()  # rank 1 never comes
except KeyboardInterrupt as interrupt:
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {interrupt.__notes__}")
    sys.exit(130)
