"""Plain NumPy: muster run -n 2 -- python numpy_sgd.py [STEPS [SECONDS A STEP]]

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import hashlib
import os
import sys
import time

import numpy

import muster  # muster

RANK = int(os.environ["RANK"])


def main(steps=400, seconds=0.01):
    w = numpy.zeros((64, 64))
    with muster.Node(state=muster.TrainingState(w=w), layout="sharded") as node:  # muster
        for step in range(node.steps_done, steps):  # was: for step in range(steps):
            batch = numpy.random.default_rng((RANK, step)).standard_normal(w.shape)
            w -= 0.01 * (w - batch)
            time.sleep(seconds)
            node.step()  # muster: saves with all ranks; raises Preempted
        print(f"{steps} steps, weights {hashlib.sha256(w.tobytes()).hexdigest()[:16]}")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))
