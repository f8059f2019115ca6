"""For programs that are preempted: Launch.ended asks whether each process ended as Python does."""

import atexit
from contextlib import contextmanager

atexit.register(lambda: print("atexit ran", flush=True))


@contextmanager
def told():
    try:
        yield
    finally:
        print("finally ran", flush=True)
