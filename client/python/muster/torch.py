"""PyTorch: a Checkpointer of model, optimizer, data and random numbers. Tested with torch 2.15.

import muster, muster.torch as mt

mt.init_process_group("gloo")
model = DistributedDataParallel(Net())
with mt.Checkpointer(
    model=model, optimizer=optimizer, data=data, save_every=500, keep=[muster.KeepLatest(3)]
) as ck:
    ck.restore()
    for step in ck.steps(10_000):
        ...                          # forward, backward, optimizer.step()
        ck.step()                    # saves with all ranks; raises muster.Preempted
"""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import torch

from . import _framework

_framework.check_version("muster.torch", "torch", torch.__version__)

import torch.distributed
from torch.distributed.constants import default_pg_nccl_timeout, default_pg_timeout

from ._errors import (
    Error,
    NotFoundError,
    RestoreError,
    WaitTimeout,
    integer,
    misused,
    unfit,
    wrong,
    wrong_type,
)
from ._manager import Manager
from ._member import RestoreContext, SaveContext
from ._native import lib
from ._signals import shield
from ._tasks import _apart

_FILE = "rank.pt"
_SELF = uuid.uuid4().hex  # a rank that is restarted is another process
_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


def local_rank() -> int:
    """This process's number on its host, as `muster run` or torchrun tells it."""
    return int(os.environ.get("LOCAL_RANK") or os.environ.get("MUSTER_LOCAL_RANK") or 0)


def _meeting_file() -> pathlib.Path | None:
    """A file that the ranks of this launch share, and no other launch: on one host alone."""
    life = os.environ.get("MUSTER_LIFE_FILE")
    if not life or os.environ.get("MUSTER_LOCAL_SIZE") != os.environ.get("MUSTER_WORLD_SIZE"):
        return None
    launch = f"{pathlib.Path(life).parent.name}-{os.environ.get('MUSTER_RESTART_COUNT', '0')}"
    return pathlib.Path(tempfile.gettempdir(), f"{launch}.torch")


def _meet(
    place: str, make: Callable[[], Any], rank: int, world_size: int, timeout: timedelta
) -> Any:
    """The store that all ranks share, once all are there. Ctrl-C ends the wait.

    make: opens this rank's store at `place`. One that already has this rank's mark is a former
    launch's: it is dropped, and make is tried again.
    """
    until = time.monotonic() + timeout.total_seconds()
    came, problem = 0, None
    while (left := until - time.monotonic()) > 0:
        try:
            store = _apart(make, seconds=left)
            store.set_timeout(timeout)
            store = torch.distributed.PrefixStore("muster", store)
            if store.compare_set(f"rank {rank}", "", _SELF) == _SELF.encode():
                if store.add(f"{rank} {_SELF}", 1) == 1:
                    store.add("came", 1)
                while time.monotonic() < until:
                    came = store.add("came", 0)
                    if came >= world_size:
                        return store
                    time.sleep(0.05)
        except (torch.distributed.DistNetworkError, TimeoutError) as error:
            if rank == 0 and not isinstance(error, TimeoutError):
                raise  # its own failed, e.g. the port is taken
            problem = error
        time.sleep(0.05)
    who = f"{came} of {world_size} ranks came" if came else "rank 0 did not come"
    raise WaitTimeout(
        lib.MUSTER_E_TIMEOUT,
        f"{who} to init_process_group at {place} within {timeout.total_seconds():g} s",
        advice="see the logs of the other ranks, and whether all hosts reach that place; or give "
        "a longer timeout",
    ) from problem


def init_process_group(backend: str, **options: Any) -> None:
    """torch.distributed.init_process_group for the ranks of `muster run` and of torchrun.

    On one host, and under `muster run --nodes`, nothing has to be set. Else set MASTER_ADDR and
    MASTER_PORT for all ranks.
    options: further ones of torch's own. With init_method, store, rank or world_size, or under
    torchrun, torch itself does all of this. Else it waits for all ranks, for torch's own timeout at
    most, and Ctrl-C ends the wait. Raises WaitTimeout, and UsageError when there is no place to
    meet.
    """
    rank, world_size = os.environ.get("MUSTER_RANK"), os.environ.get("MUSTER_WORLD_SIZE")
    if rank is None or world_size is None:
        torch.distributed.init_process_group(backend, **options)
        return
    env_rank = os.environ.setdefault("RANK", rank)
    env_size = os.environ.setdefault("WORLD_SIZE", world_size)
    os.environ.setdefault("LOCAL_RANK", str(local_rank()))
    if (
        {"init_method", "store", "rank", "world_size"} & set(options)
        or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        or backend in ("mpi", "fake")  # they have places of their own
    ):
        torch.distributed.init_process_group(backend, **options)
        return
    usual = default_pg_nccl_timeout if "nccl" in backend else None
    timeout = options.get("timeout") or usual or default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise wrong_type(f"timeout is {timeout!r}; give a datetime.timedelta")
    make: Callable[[], Any]
    if "MASTER_ADDR" in os.environ and "MASTER_PORT" in os.environ:
        host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
        rank, world_size, place = env_rank, env_size, f"{host}:{port}"
        make = functools.partial(
            torch.distributed.TCPStore,
            host,
            int(port),
            int(world_size),
            int(rank) == 0,
            timeout=timedelta(days=1),  # a thread that returns while Python ends would abort it
            wait_for_workers=False,
            multi_tenant=True,
            use_libuv=os.environ.get("USE_LIBUV", "1") == "1",
        )
    else:
        meeting = _meeting_file()
        if meeting is None:
            raise misused(
                "the ranks are on several hosts and know no place to meet; set MASTER_ADDR to rank "
                "0's host, and MASTER_PORT to a free port there, for all ranks"
            )
        place = str(meeting)
        make = functools.partial(torch.distributed.FileStore, place, int(world_size))
    store = _meet(place, make, int(rank), int(world_size), timeout)
    torch.distributed.init_process_group(
        backend, store=store, rank=int(rank), world_size=int(world_size), **options
    )


def rng_state() -> dict[str, Any]:
    """The state of this process's random numbers: Python's, PyTorch's, NumPy's if it is loaded."""
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = [name, [int(key) for key in keys], *rest]
    return state


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Restores what rng_state() gave, of each library that is loaded."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(tuple(state["numpy"]))


def _refuse_pickles(place: str, value: Any, more: str = ", or give allow_pickle=True") -> None:
    """Refuses what torch.load reads only by running a pickle: it would be lost at the restore.

    more: what else can be done about it.
    """
    if isinstance(value, torch.Tensor) or type(value) in _PLAIN:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_pickles(f"{place}[{key!r}]", item, more)
    elif isinstance(value, (list, tuple, torch.Size)):
        for at, item in enumerate(value):
            _refuse_pickles(f"{place}[{at}]", item, more)
    else:
        raise wrong_type(
            f"{place} is a {type(value).__module__}.{type(value).__qualname__}, which only a "
            f"pickle can hold; make it tensors, numbers and texts{more}"
        )


def _load_file(path: pathlib.Path, advice: str, allow_pickle: bool = False) -> dict[str, Any]:
    """What torch.save wrote. Raises RestoreError, with this advice, for a pickle not allowed."""
    try:
        state: dict[str, Any] = torch.load(
            path, map_location="cpu", weights_only=not allow_pickle
        )
    except pickle.UnpicklingError as error:
        raise RestoreError(
            lib.MUSTER_E_RESTORE,
            f"{path} holds values that only a pickle can hold, and loading a pickle might run any "
            f"program; {advice}",
        ) from error
    return state


def _check_values(model: Any) -> None:
    for tensors in ("named_parameters", "named_buffers"):
        for name, tensor in getattr(model, tensors, tuple)():
            if tensor.is_meta:
                raise wrong(
                    f"{name!r} of the model is on the device meta, and has no values to save; "
                    "materialize the model first, as with model.to_empty(device=...)"
                )


def _load_part(name: str, part: Any, state: Any) -> None:
    try:
        part.load_state_dict(state)
    except Error:
        raise
    except Exception as error:
        raise unfit(name, error) from error


class Checkpointer:
    """Saves and restores what a training consists of, at the step that all ranks agreed on.

    model, optimizer, scheduler, data: anything with state_dict() and load_state_dict(), or None.
    data is the loader or sampler that goes on where it stopped, as torchdata's
    StatefulDataLoader. others: more of that kind, by name.
    Each rank saves its own, and gets its own back, with its own random numbers: so no rank ever
    trains on another's data. The next launch has the same number of ranks.
    save_every: all ranks save after each step that it divides, but not after step 0. None = a
    preempted launch alone is saved. A job's last step gets no checkpoint of its own: save the
    trained model after the loop.
    allow_pickle: states may hold any Python object; a checkpoint is then as trusted as a program.
    options: those of muster.Manager, such as keep, save, directory, sources, grace. Without keep
    every checkpoint stays.

    node: this rank, a muster.Manager; it has announced, events(), all_steps(), pin() and more.
    """

    def __init__(
        self,
        *,
        model: Any = None,
        optimizer: Any = None,
        scheduler: Any = None,
        data: Any = None,
        others: Mapping[str, Any] | None = None,
        save_every: int | None = None,
        allow_pickle: bool = False,
        **options: Any,
    ) -> None:
        named = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "data": data}
        self._parts = {name: part for name, part in named.items() if part is not None}
        self._parts.update(others or {})
        for name, part in self._parts.items():
            if not hasattr(part, "state_dict") or not hasattr(part, "load_state_dict"):
                raise wrong_type(
                    f"{name} is a {type(part).__name__} without state_dict and load_state_dict; "
                    "give an object that has both, for data torchdata's StatefulDataLoader"
                )
        _check_values(model)
        if "random" in self._parts:
            raise wrong("the name 'random' is muster's own; call it something else")
        self._allow_pickle = allow_pickle
        self._every = integer("save_every", save_every, bits=62)
        if self._every < 0:
            raise wrong(f"save_every is {self._every}; give 1 or more, or None")
        self._check(self._state())
        self.node = Manager(
            save_fn=self._save, restore_fn=self._restore, **_framework.own_parts(options)
        )

    def restore(self) -> bool:
        """Restores the job's newest checkpoint, the same on every rank; False = from the start.

        Waits for the other ranks (join_timeout). Raises muster.RestoreError.
        """
        return self.node.restore() is not None

    def steps(self, total: int) -> Iterator[int]:
        """The numbers of the steps that are left of `total`, from the restored checkpoint on.
        Raises UsageError when a step ended without step().
        """
        while self.node.steps_done < total:
            step = self.node.steps_done
            yield step
            if self.node.steps_done == step:
                raise misused(f"step {step} ended without step(); call it at its end")

    def step(self, metrics: Mapping[str, Any] | None = None) -> None:
        """Call it after each step of training. It saves with all ranks where all agreed to, and
        waits until the checkpoint is committed.

        metrics: of this step, by name, for muster.KeepBest; they are read only if it is saved.
        Costs microseconds while nothing happens. Raises Preempted once the job's termination is
        settled: leave the loop. A save that failed is logged, and training goes on.
        """
        step = self.node.steps_done
        due = self._every > 0 and step > 0 and step % self._every == 0
        with _framework.Leaving(lambda raised: None):  # the block's end leaves
            if self.node.should_save(step, force=due):
                self.node.save(step, metrics=metrics)

    def close(self, code: int = 0) -> None:
        """Leaves the job, and waits for what this rank still owes. Raises Preempted when the job is
        being terminated; see muster.Node.close.
        """
        self.node.close(code)

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.node.__exit__(*raised)

    def _state(self) -> dict[str, Any]:
        state = {name: part.state_dict() for name, part in self._parts.items()}
        state["random"] = rng_state()
        return state

    def _check(self, state: Mapping[str, Any]) -> None:
        if not self._allow_pickle:
            for name, part in state.items():
                _refuse_pickles(name, part)

    def _save(self, context: SaveContext) -> None:
        state = self._state()
        self._check(state)
        torch.save(state, context.directory / _FILE)

    def _load(self, path: pathlib.Path) -> dict[str, Any]:
        """What a rank saved. Raises NotFoundError when another program saved it."""
        advice = "give allow_pickle=True if you trust the program that saved it"
        state = _load_file(path, advice, self._allow_pickle)
        missing = set(self._parts) ^ (set(state) - {"random"})
        if missing:
            raise NotFoundError(
                lib.MUSTER_E_NOT_FOUND,
                f"the checkpoint in {path.parent} and this program differ in "
                f"{', '.join(sorted(missing))}; give the same parts as when it was saved",
            )
        return state

    def _restore(self, context: RestoreContext) -> None:
        assert context.directory is not None
        state = self._load(context.directory / _FILE)
        for name, part in self._parts.items():
            _load_part(name, part, state[name])
            part.state_dict()  # a loader begins its iterator with it, and draws a random number
        set_rng_state(state["random"])


__all__ = ["Checkpointer", "init_process_group", "local_rank", "rng_state", "set_rng_state", "shield"]
