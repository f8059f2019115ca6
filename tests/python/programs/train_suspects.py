"""Rank 0's collective breaks: train_suspects.py killed | stopped | alive, as rank 1 is.
train_suspects.py raises: none breaks, and rank 1 raises an exception of its own.
"""

import os
import signal
import sys
import time

import numpy

import muster

with muster.Node(state=muster.TrainingState(w=numpy.zeros(4))) as node:
    while node.steps_done < 5:
        node.step()
    if sys.argv[1] == "raises":
        while node.rank == 0 or node.steps_done < 17:
            time.sleep(0.01)
            node.step()
        raise ValueError(f"bad batch {node.steps_done}")
    if node.rank == 1:
        if sys.argv[1] != "alive":
            os.kill(os.getpid(), signal.SIGKILL if sys.argv[1] == "killed" else signal.SIGSTOP)
        while True:
            time.sleep(0.01)
            node.step()
    try:
        node.fail("Connection reset by peer", 3, suspect=True, wait=600)
    except muster.PeerError as error:
        print(f"PeerError of rank {error.rank}")
        raise
    except muster.StepError as error:
        print(f"StepError: {error.text}")
        raise
