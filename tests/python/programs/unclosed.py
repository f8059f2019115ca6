"""Fails once with a manager that nobody closes, and then trains to the end: unclosed.py KIND MARK"""

import pathlib
import sys

import numpy

import muster

kind, mark = sys.argv[1], pathlib.Path(sys.argv[2])
state = muster.TrainingState(w=numpy.zeros(4))


def train():
    manager = muster.Manager(state=state, keep=[muster.KeepEverySteps(100)])
    restored = manager.restore()
    print("restored", restored and restored.step)
    if kind == "exits":
        globals()["kept"] = manager  # until the interpreter ends
    for step in range(restored.step + 1 if restored else 0, 40):
        state["w"] += 1
        manager.save(step, force=step == 20)
        if step == 30 and not mark.exists():
            mark.touch()
            raise ValueError("on purpose")
    manager.close()


try:
    train()
except ValueError:
    sys.exit(3)
