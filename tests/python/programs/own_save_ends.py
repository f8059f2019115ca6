"""A save of its own fails at rank 1, which leaves in its turn: own_save_ends.py ATTEMPTS

The job is preempted. Rank 0 saves whenever it is told to. Rank 1 fails ATTEMPTS times, and closes
behind the last of them.
"""

import contextlib
import sys
import time

import muster

attempts = int(sys.argv[1])
with muster.Manager(state=muster.TrainingState(), layout="sharded") as manager:
    manager.restore()
    if manager.rank == 0:
        manager.notify(left=14)
    for step in range(10**6):
        time.sleep(0.01)
        if not manager.should_save(step):
            continue
        if manager.rank == 1:
            manager.fail_save("no room for the weights")
            attempts -= 1
            if attempts == 0:
                break
        else:
            with contextlib.suppress(muster.SaveError):
                manager.save(step)
