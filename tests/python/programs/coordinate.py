"""Waits for a task that nobody runs, until Ctrl-C: coordinate.py join | fetch | open"""

import sys
import time

import muster

what = sys.argv[1]
began = time.monotonic()
try:
    print("blocks")
    with muster.Coordinator(connect_timeout=60) as coordinator:
        value = coordinator.schedule("square", b"3")
        value.fetch() if what == "fetch" else coordinator.join()
except KeyboardInterrupt:
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s")
    sys.exit(130)
