"""JAX: where the ranks of `muster run` meet, and the job's own answer to
reached_preemption_sync_point. Tested with jax 0.10.

import muster.jax as mj

jax.distributed.initialize()                       # finds the ranks of muster run
with mj.PreemptionSync("checkpoints") as sync:     # joins the job
    first = sync.latest.step + 1 if sync.latest else 0
    for step in range(first, 10_000):
        ...
        if sync.reached(step):
            write(path)                            # by all processes, as you do today
            sync.saved(step, path)                 # commits; raises muster.Preempted

With Orbax use muster.orbax instead, which does all this by itself.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import jax

from . import _framework

_framework.check_version("muster.jax", "jax", jax.__version__)

from jax._src import clusters, distributed

from ._elsewhere import Elsewhere, Saved
from ._errors import misused
from ._tasks import _apart


def _is_launched() -> bool:
    return "MUSTER_RANK" in os.environ and "MUSTER_WORLD_SIZE" in os.environ


def _place_to_meet(port: str | None = None) -> str:
    port = port or os.environ.get("MASTER_PORT")
    if "MASTER_ADDR" not in os.environ or port is None:
        raise misused(
            "the ranks are on several hosts and know no place to meet; set MASTER_ADDR to rank "
            "0's host, and MASTER_PORT to a free port there, for all ranks"
        )
    return f"{os.environ['MASTER_ADDR']}:{port}"


class _Cluster(clusters.ClusterEnv):  # type: ignore[misc] # jax is not read here
    """The ranks of `muster run`, for a jax.distributed.initialize() without arguments."""

    name = "muster"

    @classmethod
    def is_env_present(cls) -> bool:
        return _is_launched()

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None, override_coordinator_port: Any
    ) -> str:
        return _place_to_meet(override_coordinator_port)

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ["MUSTER_WORLD_SIZE"])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ["MUSTER_RANK"])


# What `muster run` started is not asked of the scheduler that started `muster run`.
clusters.ClusterEnv._cluster_types.insert(0, clusters.ClusterEnv._cluster_types.pop())
if _is_launched():  # it takes SIGTERM, and waits for the other processes inside of its answer
    jax.config.update("jax_enable_preemption_service", False)


def initialize(**options: Any) -> None:
    """jax.distributed.initialize for the ranks of `muster run`; call it before anything of JAX.

    A plain jax.distributed.initialize() after `import muster.jax` or `import muster.orbax` finds
    these ranks, too.

    On one host nothing has to be set. On several, set MASTER_ADDR to rank 0's host and MASTER_PORT
    to a free port there, for all ranks. JAX's own preemption service stays off: it takes SIGTERM,
    and waits for the other processes inside of its answer.
    options: those of jax.distributed.initialize; what is given there is used. Without `muster run`
    JAX looks for a cluster by itself.
    Waits for all processes, for JAX's own initialization_timeout at most. Ctrl-C ends this wait,
    unlike that of a plain jax.distributed.initialize(). Raises what JAX raises, and UsageError when
    there is no place to meet.
    """
    jax.config.update("jax_enable_preemption_service", False)
    rank, world_size = os.environ.get("MUSTER_RANK"), os.environ.get("MUSTER_WORLD_SIZE")
    if rank is None or world_size is None:
        _apart(lambda: jax.distributed.initialize(**options))
        return
    given = {"num_processes": int(world_size), "process_id": int(rank), **options}
    if "coordinator_address" not in given and "JAX_COORDINATOR_ADDRESS" not in os.environ:
        given["coordinator_address"] = _place_to_meet()
    _apart(lambda: jax.distributed.initialize(**given))


class _Sync:
    """What JAX calls as its preemption sync manager."""

    def __init__(self, reached: Any) -> None:
        self._reached = reached

    def reached_sync_point(self, step_id: int) -> bool:
        return bool(self._reached(step_id))

    def shutdown(self) -> None:
        pass


def replace_preemption_service() -> None:
    """Ends JAX's own preemption service. Before muster's node is opened: it takes its handler of
    SIGTERM along.
    """
    service, distributed.global_state.preemption_sync_manager = (
        distributed.global_state.preemption_sync_manager,
        None,
    )
    if service is not None:
        service.shutdown()


def answer_preemption_sync(reached: Any) -> None:
    """From here on multihost_utils.reached_preemption_sync_point asks reached(step)."""
    distributed.global_state.preemption_sync_manager = _Sync(reached)


def check_world(elsewhere: Elsewhere) -> None:
    """Raises UsageError when JAX and muster do not count the same processes."""
    world_size = elsewhere.manager.world_size
    if world_size != jax.process_count():
        error = misused(
            f"muster's job has {world_size} ranks and JAX {jax.process_count()} processes, so they "
            "would not save together; call muster.jax.initialize() first, or set MUSTER_RANK and "
            "MUSTER_WORLD_SIZE to JAX's own"
        )
        elsewhere.leave(error)
        raise error


class PreemptionSync:
    """All processes of a JAX program save at one agreed step when one of them has to go, and the
    broker knows which checkpoint is the latest. The program writes it.

    Call reached(step) on all processes after each step, with a step that grows. It costs some
    microseconds while nothing happens, and waits for other processes at a save alone. Between
    several processes jax.experimental.multihost_utils.reached_preemption_sync_point(step) asks it
    too; where jax.distributed is not initialized, JAX says no without asking.

    directory: of muster's own small files, seen by all processes; None = MUSTER_CHECKPOINT_DIR.
    options: those of muster.Manager, as save policies, grace, sources. Raises muster.Error, and
    UsageError when JAX and muster do not count the same processes.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        replace_preemption_service()
        self._elsewhere = Elsewhere(directory=directory, **options)
        check_world(self._elsewhere)
        answer_preemption_sync(self.reached)

    @property
    def latest(self) -> Saved | None:
        """The newest committed checkpoint, the same on all processes: its step and path."""
        return self._elsewhere.latest

    def reached(self, step: int) -> bool:
        """Is `step` saved: for a termination, an operator, or a save policy? Then write it, and
        call saved(step, path). Raises muster.Preempted, PeerError and other muster.Error.
        """
        asked = self._elsewhere.asked
        if asked is not None and step < asked:
            return self._elsewhere.leaves(step)
        return self._elsewhere.ask(step, wanted=False)

    def saved(
        self,
        step: int,
        path: str | os.PathLike[str],
        *,
        metrics: Mapping[str, float] | None = None,
    ) -> bool:
        """All processes have written `step` to `path`, which is one path for all. Commits it.

        Returns whether it is committed; with False it does not count, and the log says why. A step
        that reached() did not ask for is committed too. If the program deletes an older
        checkpoint, muster forgets it at the next step. Raises muster.Preempted after a save that
        ends the job.
        """
        if not self._elsewhere.ask(step, wanted=True):
            return False
        return self._elsewhere.commit(
            step,
            os.fspath(path if "://" in str(path) else pathlib.Path(path).absolute()),
            writer=True,
            metrics=metrics or {},
        )

    def close(self) -> None:
        """Leaves the job. Raises muster.Preempted when it is being terminated."""
        self._elsewhere.close()

    def __enter__(self) -> PreemptionSync:
        return self

    def __exit__(self, kind: Any, raised: BaseException | None, trace: Any) -> None:
        if raised is None:
            self.close()
        else:
            self._elsewhere.leave(raised)


__all__ = ["PreemptionSync", "Saved", "initialize"]
