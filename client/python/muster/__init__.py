"""muster: a training job loses nothing when it is preempted. See client/python/README.md.

    import numpy, muster

    state = muster.TrainingState(w=numpy.zeros(10))
    with muster.Node(state=state) as node:        # joins the job, restores the newest checkpoint
        while node.steps_done < 1000:
            state["w"] += 1                       # one step
            node.step()                           # saves; raises Preempted when it is time to go

Importing this package imports no framework. muster.torch needs PyTorch.
"""

from ._library import LIBRARY as _LIBRARY  # isort: skip # first: it says why nothing else loads
from ._client import Client
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    CorruptError,
    Error,
    ForkedError,
    Interrupted,
    MissingFileError,
    NotFoundError,
    PeerError,
    Preempted,
    RestoreError,
    SaveError,
    StepError,
    TaskError,
    UsageError,
    VersionError,
    WaitTimeout,
)
from ._checkpoints import CheckpointInfo, Reader
from ._manager import (
    KeepBest,
    KeepEvery,
    KeepEverySteps,
    KeepEveryStepsClosest,
    KeepLast,
    KeepLatest,
    KeepSteps,
    Manager,
    Restored,
    SaveEvery,
    SaveEverySteps,
    SaveFirst,
    SaveShare,
    SaveSteps,
)
from ._log import Event
from ._member import Announced, RestoreContext, SaveContext
from ._node import Node, Position
from ._read import Checkpoint, FileInfo, TensorInfo, read
from ._rows import Row
from ._signals import shield
from ._state import TrainingState, split_range
from ._tasks import Coordinator, PerWorker, RemoteValue, Task, Worker

__version__: str = _LIBRARY

__all__ = [
    "Announced",
    "ArgumentError",
    "ArgumentTypeError",
    "BrokerError",
    "Checkpoint",
    "CheckpointInfo",
    "Client",
    "Coordinator",
    "CorruptError",
    "Error",
    "Event",
    "FileInfo",
    "ForkedError",
    "Interrupted",
    "KeepBest",
    "KeepEvery",
    "KeepEverySteps",
    "KeepEveryStepsClosest",
    "KeepLast",
    "KeepLatest",
    "KeepSteps",
    "Manager",
    "MissingFileError",
    "Node",
    "NotFoundError",
    "PeerError",
    "PerWorker",
    "Position",
    "Preempted",
    "Reader",
    "RemoteValue",
    "Restored",
    "RestoreContext",
    "RestoreError",
    "Row",
    "SaveContext",
    "SaveError",
    "SaveEvery",
    "SaveEverySteps",
    "SaveFirst",
    "SaveShare",
    "SaveSteps",
    "StepError",
    "Task",
    "TaskError",
    "TensorInfo",
    "TrainingState",
    "UsageError",
    "VersionError",
    "WaitTimeout",
    "Worker",
    "read",
    "shield",
    "split_range",
]
