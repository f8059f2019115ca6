"""A node, and a forked child that has none: forks.py"""

import os
import signal
import time

import numpy

import muster

state = muster.TrainingState(w=numpy.zeros(4))
with muster.Node(state=state) as node:
    node.step()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            node.step()
        except muster.ForkedError:
            code = 7
        try:
            node.close()
            code = 2
        except muster.ForkedError:
            pass
        del node
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    child = os.fork()
    if child == 0:
        raise SystemExit(
            9
        )  # finally, __exit__ and atexit run here, and touch nothing of the parent's
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    node.step()
    assert node.steps_done == 2
print("the parent went on")
