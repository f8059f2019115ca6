"""One process of a loop of steps of 5 ms: agree.py jax|muster DIRECTORY [ADDRESS COUNT PROCESS].
It writes its pid once it has taken some steps, and the time at which it stands at the step that
all agreed on.
"""

import os
import pathlib
import signal
import sys
import time

STEP_SECONDS = 0.005
STEPS_BEFORE = 20


def told(name, value):
    part = directory / f"{name}.part"
    part.write_text(str(value))
    part.rename(directory / name)


def steps(first=0):
    step = first
    while True:
        step += 1
        time.sleep(STEP_SECONDS)
        if step == first + STEPS_BEFORE:
            told(f"ready-{process}", os.getpid())
        yield step


def of_jax(address, count):
    import jax
    from jax.experimental import multihost_utils

    jax.distributed.initialize(address, count, process)
    for step in steps():
        if multihost_utils.reached_preemption_sync_point(step):
            told(f"stands-{process}", time.monotonic())
            break
    signal.pause()  # the test kills it: its end would end those that are a step behind


def of_muster(manager):
    global process

    restored = manager.restore()
    process = manager.rank
    for step in steps(restored.step if restored else 0):
        if manager.should_save(step):
            told(f"stands-{process}", time.monotonic())
        manager.save(step)


directory = pathlib.Path(sys.argv[2])
if sys.argv[1] == "jax":
    process = int(sys.argv[5])
    of_jax(sys.argv[3], int(sys.argv[4]))
else:
    import numpy

    import muster

    # sharded: of a replicated job only the writer has to stand at the step
    state = muster.TrainingState(w=numpy.zeros(8))
    with muster.Manager(state=state, layout="sharded") as opened:
        of_muster(opened)
