"""Waits in one call of a coordinator until Ctrl-C, for a task that nobody runs or for a broker that
does not answer: coordinate.py open | join | fetch | full | flush | value | close
"""

import sys
import time

import ends

import muster

what = sys.argv[1]
calls = {
    "join": lambda coordinator, value: coordinator.join(),
    "fetch": lambda coordinator, value: value.fetch(),
    "full": lambda coordinator, value: coordinator.schedule("square", b"4"),
    "flush": lambda coordinator, value: coordinator.flush(),
    "value": lambda coordinator, value: coordinator.per_worker("base", b"5"),
    "close": lambda coordinator, value: None,
}
began = time.monotonic()
try:
    if what == "open":
        print("blocks")
    most = 1 if what == "full" else None
    with ends.told(), muster.Coordinator(connect_timeout=60, max_queued=most) as coordinator:
        value = coordinator.schedule("square", b"3")
        if what in ("flush", "value", "close"):
            print("the broker sleeps from here on")
            sys.stdin.readline()
            if what != "value":
                other = coordinator.schedule("square", b"4")  # which it has yet to hand over
        print("blocks")
        calls[what](coordinator, value)
except KeyboardInterrupt:
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s")
    sys.exit(130)
