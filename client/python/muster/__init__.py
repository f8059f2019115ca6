"""muster: preemption of a training job costs nothing. See client/python/README.md.

    import numpy, muster

    state = muster.TrainingState(w=numpy.zeros(10))
    with muster.Node(state=state) as node:        # joins the job, restores the newest checkpoint
        while node.steps_done < 1000:
            state["w"] += 1                       # one step
            node.step()                           # saves; raises Preempted when it is time to go

Importing this package imports no framework. muster.torch needs PyTorch.
"""

from ._client import Client, Row
from ._errors import (
    BrokerError,
    Error,
    ForkedError,
    Interrupted,
    PeerError,
    Preempted,
    RestoreError,
    SaveError,
    StepError,
    WaitTimeout,
)
from ._native import ffi as _ffi
from ._native import lib as _lib
from ._node import Node, Position, RestoreContext, SaveContext
from ._state import TrainingState, split_range

__version__: str = _ffi.string(_lib.muster_version()).decode()

__all__ = [
    "BrokerError",
    "Client",
    "Error",
    "ForkedError",
    "Interrupted",
    "Node",
    "PeerError",
    "Position",
    "Preempted",
    "RestoreContext",
    "RestoreError",
    "Row",
    "SaveContext",
    "SaveError",
    "StepError",
    "TrainingState",
    "WaitTimeout",
    "split_range",
]
