"""PyTorch's distributed checkpoints: FSDP2, tensor parallelism, DDP. Tested with torch 2.15.

import muster.dcp, muster.torch

muster.torch.init_process_group("cpu:gloo,cuda:nccl")
model = fully_shard(Net())
with muster.dcp.Checkpointer(
    model=model, optimizer=optimizer, data=data, save_every=500, keep=[muster.KeepLatest(3)]
) as ck:
    ck.restore()                     # what any number of ranks saved
    for step in ck.steps(10_000):
        ...                          # forward, backward, optimizer.step()
        ck.step()                    # saves with all ranks; raises muster.Preempted
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from . import _framework

_framework.require_version("muster.dcp", "torch", torch.__version__)

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from . import torch as _torch  # it warns of a version that nobody tested
from ._errors import missing, unfit, wrong, wrong_type
from ._log import log
from ._member import RestoreContext, SaveContext


class _Writer(dcp.FileSystemWriter):  # type: ignore[misc] # torch is not read here
    """Writes each rank's part into that rank's own directory, and the list of all parts into rank
    0's. The list names the others by where they are beside it: so DCP alone reads rank 0's
    directory, and muster has the sums of what each rank wrote.
    """

    def write_data(self, plan: Any, planner: Any) -> Any:
        written = super().write_data(plan, planner)
        own = pathlib.Path(self.path).name
        for result in written.wait():
            place = result.storage_data
            place.relative_path = f"../{own}/{place.relative_path}"
        return written


def _cause(error: BaseException) -> BaseException:
    """Of a failure on several ranks, the first one's: the text of all has their tracebacks."""
    failures = getattr(error, "failures", None) or {}
    for _, (raised, _) in sorted(failures.items()):
        return raised if isinstance(raised, BaseException) else error
    return error


class Checkpointer(_torch.Checkpointer):
    """Saves a sharded model by torch.distributed.checkpoint, at the step that all ranks agreed on.

    DCP writes into muster's directory; muster decides when, times it, and commits what is whole.
    model: a Module, as fully_shard or DistributedDataParallel made it. optimizer: one, or several.
    They are restored on any number of ranks.
    data: the loader or sampler that goes on where it stopped. Each rank saves its own, with its own
    random numbers, and gets its own back.
    resize: called instead of data.load_state_dict when another number of ranks saved the
    checkpoint. It gets the state of `data` of each of those, in the order of their ranks. Without
    it such a checkpoint is refused if there is data, because nobody else knows how to share it
    out. A rank that had no predecessor keeps the random numbers that the program seeded.
    scheduler, others: what is alike on all ranks; another number of ranks gets rank 0's.
    process_group: of DCP's collectives; None = the default one.
    allow_pickle: of what is not in DCP's own files. Those are pickled in part, whatever is given
    here: a checkpoint of DCP is as trusted as a program.
    options: those of muster.torch.Checkpointer, such as save_every, keep, directory, sources.
    """

    def __init__(
        self,
        *,
        model: torch.nn.Module,
        optimizer: Any = None,
        scheduler: Any = None,
        data: Any = None,
        others: Mapping[str, Any] | None = None,
        resize: Callable[[list[Any]], object] | None = None,
        process_group: Any = None,
        allow_pickle: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise wrong_type(
                f"model is a {type(model).__name__}; give the torch.nn.Module that is trained"
            )
        _torch._check_values(model)
        self._model = model
        self._optimizers: Any = () if optimizer is None else optimizer
        self._resize = resize
        self._group = process_group
        super().__init__(
            scheduler=scheduler,
            data=data,
            others=others,
            allow_pickle=allow_pickle,
            restore_any_world_size=True,
            **options,
        )

    def _sharded(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._model, self._optimizers)
        return {"model": model, "optimizer": optimizer} if optimizer else {"model": model}

    def _save(self, context: SaveContext) -> None:
        super()._save(context)  # first: DCP may draw random numbers
        dcp.save(
            self._sharded(),
            storage_writer=_Writer(context.directory, sync_files=False),  # muster syncs them
            process_group=self._group,
        )

    def _restore(self, context: RestoreContext) -> None:
        saved = sorted(context.checkpoint_directory.glob(f"*/{_torch._FILE}"))
        if len(saved) != context.saved_world_size:
            raise missing(
                f"{context.checkpoint_directory} holds the files of {len(saved)} ranks instead of "
                f"{context.saved_world_size}; was it saved by muster.dcp? Start another job, or "
                "restore an older checkpoint"
            )
        resized = context.saved_world_size != context.world_size
        if resized and "data" in self._parts and self._resize is None:
            raise wrong(
                f"{context.saved_world_size} ranks saved the checkpoint in "
                f"{context.checkpoint_directory}, each with its own position in the data, and this "
                f"launch has {context.world_size}; give Checkpointer(resize=...), which divides "
                f"the positions, or start {context.saved_world_size} ranks"
            )
        state = self._sharded()
        try:
            dcp.load(
                state,
                storage_reader=dcp.FileSystemReader(saved[0].parent),
                process_group=self._group,
            )
        except (Exception, CheckpointException) as error:  # CheckpointException is no Exception
            raise unfit("the model", _cause(error)) from error
        set_state_dict(
            self._model,
            self._optimizers,
            model_state_dict=state["model"],
            optim_state_dict=state.get("optimizer", {}),
        )
        if resized:
            self._restore_resized(context, saved)
        else:
            super()._restore(context)

    def _restore_resized(self, context: RestoreContext, saved: list[pathlib.Path]) -> None:
        states = [self._load(path) for path in saved]
        for name, part in self._parts.items():
            if name != "data":
                _torch._load_part(name, part, states[0][name])
        if self._resize is not None:
            self._resize([state.get("data") for state in states])
        if "data" in self._parts:
            self._parts["data"].state_dict()  # a loader begins its iterator, as in muster.torch
        if context.rank < len(states):
            _torch.set_rng_state(states[context.rank]["random"])
        else:
            log.warning(
                "rank %d was not there when the checkpoint of step %d was saved by %d ranks; it "
                "keeps the random numbers that the program seeded",
                context.rank,
                context.step,
                len(states),
            )


__all__ = ["Checkpointer"]
