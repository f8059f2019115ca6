"""A worker until SIGTERM: worker.py INDEX. It says which of its threads are not Python's own."""

import os
import signal
import sys
import time

import ends

import muster


def square(task):
    return str(int(task.args) ** 2).encode()


def raises(task):
    raise ValueError(f"no such word: {task.args.decode()}")


def adds(task):
    return str(task.value()["base"] + int(task.args)).encode()


def waits(task):
    """On its first attempt until it is killed, or no longer wanted."""
    print(f"waits, attempt {task.attempt} of task {task.id}")
    while task.attempt == 1:
        time.sleep(0.01)
        task.renew()
        if task.cancelled:
            raise RuntimeError("nobody wants it")
    return f"{task.worker} {task.attempt}".encode()


def base(task):
    return {"base": int(task.args)}


functions = {"square": square, "raises": raises, "adds": adds, "waits": waits, "words": lambda t: 5}
with muster.Worker(functions, values={"base": base}, index=int(sys.argv[1])) as worker:
    signal.signal(signal.SIGTERM, lambda signo, frame: worker.stop())
    print("serves", os.getpid())
    try:
        worker.serve()
    finally:
        ends.tell_threads()
print("served")
