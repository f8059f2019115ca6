"""Each rank has a part of one array, and a number of its own: train_split.py"""

import os

import numpy

import muster

rank, ranks = int(os.environ["MUSTER_RANK"]), int(os.environ["MUSTER_WORLD_SIZE"])
begin, count = muster.split_range(7, rank, ranks)
state = muster.TrainingState(own=numpy.array(rank))
part = numpy.arange(2 * begin, 2 * (begin + count), dtype="float32").reshape(count, 2)
state.add_split("w", part, (7, 2), 0, begin)
with muster.Node(state=state, layout="sharded", save_every=1) as node:
    node.step()
    node.step()
