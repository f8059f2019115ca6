"""For programs that are preempted: Launch.ended asks whether each process ended as Python does, and
whether muster called it only on threads of Python's own.
"""

import atexit
import threading
from contextlib import contextmanager

from muster import _hooks, _tasks

atexit.register(lambda: print("atexit ran", flush=True))
_called_on = set()


class _Watched:
    """cffi's ffi, for muster's callbacks: each of them begins with from_handle."""

    def __init__(self, ffi):
        self._ffi = ffi

    def __getattr__(self, name):
        return getattr(self._ffi, name)

    def from_handle(self, handle):
        _called_on.add(threading.current_thread().name)  # a thread of C's gets a made-up name
        return self._ffi.from_handle(handle)


_hooks.ffi, _tasks.ffi = _Watched(_hooks.ffi), _Watched(_tasks.ffi)


def tell_threads():
    known = sorted(_called_on | {each.name for each in threading.enumerate()})
    print("foreign threads:", [name for name in known if name.startswith("Dummy")], flush=True)
    print("called back on:", sorted(_called_on), flush=True)


@contextmanager
def told():
    try:
        yield
    finally:
        tell_threads()
        print("finally ran", flush=True)
