"""A rank that saves and restores by callables of its own: train_callable.py STEPS SECONDS [MODE]

MODE: save-raises, restore-raises, save-waits (until SIGINT), a plain run otherwise.
"""

import sys
import threading
import time

import ends
import numpy

import muster

steps, seconds = int(sys.argv[1]), float(sys.argv[2])
mode = sys.argv[3] if len(sys.argv) > 3 else ""
weights = numpy.zeros(16)


def save(context):
    assert isinstance(context, muster.SaveContext) and not list(context.directory.iterdir())
    assert threading.current_thread() is threading.main_thread()
    if mode == "save-raises":
        raise RuntimeError("CUDA out of memory")
    if mode == "save-waits":
        print("the save waits")
        time.sleep(60)
    numpy.save(context.directory / "weights.npy", weights)
    print(f"saved {context.step}")


def restore(context):
    assert threading.current_thread() is threading.main_thread()
    if mode == "restore-raises":
        raise KeyError("no such layer")
    weights[...] = numpy.load(context.directory / "weights.npy")
    print(f"restored {context.step}")


with ends.told(), muster.Node(save=save, restore=restore) as node:
    print("ready")
    while node.steps_done < steps:
        weights += 1
        time.sleep(seconds if node.generation == 1 else 0)
        node.step()
    print(f"finished {weights[0]:.0f}")
