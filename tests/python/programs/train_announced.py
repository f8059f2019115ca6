"""Trains until the end of a rank is announced, says which, and trains on until all have said so."""

import pathlib
import sys
import time

import numpy

import muster

directory = pathlib.Path(sys.argv[1])
state = muster.TrainingState(w=numpy.zeros(4))
with muster.Node(state=state) as node:
    while len(list(directory.glob("told-*"))) < node.world_size:
        node.step()
        time.sleep(0.01)
        told = node.announced
        if told is not None:
            print(f"rank {told.rank} ends, by {told.kind}, in {told.left:.0f} s", flush=True)
            (directory / f"told-{node.rank}").touch()
