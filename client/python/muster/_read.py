"""read: reads a checkpoint without its job."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import _hooks
from ._errors import NotFoundError, check, encoded, natural, new_error, wrong_type
from ._native import ffi, lib
from ._state import TrainingState

# safetensors' names, and those of NumPy or ml_dtypes.
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "I64": "int64",
    "U64": "uint64",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "C64": "complex64",
}


def _numpy_dtype(name: str, dtype: str) -> Any:
    import numpy

    known = _DTYPES[dtype]
    if not known.startswith(("bfloat", "float8")):
        return numpy.dtype(known)
    try:
        import ml_dtypes
    except ImportError:
        raise wrong_type(
            f"tensor {name!r} is {dtype}, for which NumPy has no type; install ml_dtypes, or "
            "load() it into a tensor of PyTorch"
        ) from None
    return numpy.dtype(getattr(ml_dtypes, known))


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a checkpoint. dtype: as safetensors names it, such as "F32" or "BF16".

    shape: that of the whole; with `rank`, that of the rank's part. ranks: how many ranks have the
    tensor, or a part of it. axis: the axis along which it was saved in parts, None = saved whole.
    begin: with `rank`, where the rank's part begins on that axis.
    """

    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    ranks: int
    axis: int | None = None
    begin: int | None = None


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A file of a checkpoint. checksum: with its kind before it, such as "xxh3-128:…"."""

    size_bytes: int
    checksum: str
    rank: int


class Checkpoint(Mapping[str, Any]):
    """The contents of a checkpoint; made by read(). It maps names to NumPy arrays, as the result of
    safetensors' load_file does, but each array is read when it is asked for.

    tensors: each tensor by its name. files: each file by its path below `path`.
    metadata: values saved beside them: "job", "step", "generation", "world_size", "epoch",
    "metrics", "custom" and more; None = not told. More members may follow.
    """

    def __init__(self, path: str | os.PathLike[str], *, rank: int | None = None) -> None:
        self._directory = encoded("path", path)
        self.path = os.fspath(path)
        self.rank = rank
        self._options = ffi.new("struct muster_read_options *")
        lib.muster_read_options_init(self._options, ffi.sizeof("struct muster_read_options"))
        if rank is not None:
            self._options.rank = natural("rank", rank, bits=31)
        told = self._metadata()
        self.tensors = {
            name: TensorInfo(
                tensor["dtype"],
                tuple(tensor["shape"]),
                tensor["bytes"],
                tensor["ranks"],
                tensor.get("axis"),
                tensor.get("begin"),
            )
            for name, tensor in sorted(told.pop("tensors").items())
        }
        self.files = {
            name: FileInfo(file["bytes"], file["checksum"], file["rank"])
            for name, file in sorted(told.pop("files").items())
        }
        for name in ("epoch", "step_in_epoch", "data_position"):
            if told.get(name) == -1:
                told[name] = None
        self.metadata: dict[str, Any] = told

    def _metadata(self) -> dict[str, Any]:
        error = new_error()
        box = ffi.new("char **")
        status = lib.muster_checkpoint_metadata(self._directory, self._options, box, error)
        check(status, error)
        try:
            told: dict[str, Any] = json.loads(ffi.string(box[0]))
        finally:
            lib.free(box[0])
        return told

    @property
    def step(self) -> int:
        """How many steps the checkpoint comes after."""
        return int(self.metadata["step"])

    def load(self, state: TrainingState) -> None:
        """Fills each array of `state` in place; a checkpoint's other tensors are not read.

        An array of add_split gets its part of a tensor that was saved in parts. Reads each file
        once; Ctrl-C breaks it off. Raises what read raises, NotFoundError for a name that is not
        there, and RestoreError for another shape or dtype, or for a tensor that differs between the
        ranks.
        """
        state.check()
        error = new_error()
        hooks = _hooks.Hooks()  # of this call: other threads may read, too
        options = ffi.new("struct muster_read_options *", self._options[0])
        options.interrupted_fn, options.arg = lib.muster_py_interrupted, hooks.handle
        status = lib.muster_checkpoint_read(self._directory, options, state._box[0], error)
        _hooks.settle(hooks, status, error)

    def __getitem__(self, name: str) -> Any:
        """The tensor as a NumPy array, read from the disk each time. bfloat16 and float8 need the
        package ml_dtypes. Raises what load raises.
        """
        import numpy

        tensor = self._known(self.tensors, name, "tensor")
        array = numpy.empty(tensor.shape, _numpy_dtype(name, tensor.dtype))
        self.load(TrainingState({name: array}))
        return array

    def read_file(self, path: str) -> bytes:
        """A file's bytes, with their checksum checked. Raises what load raises."""
        data = bytearray(self._known(self.files, path, "file").size_bytes)
        state = TrainingState()
        state.add_bytes(path, data)
        self.load(state)
        return bytes(data)

    def _known(self, what: Mapping[str, Any], name: str, kind: str) -> Any:
        if name in what:
            return what[name]
        some = ", ".join(map(repr, list(what)[:5])) or "none"
        raise NotFoundError(
            lib.MUSTER_E_NOT_FOUND,
            f"there is no {kind} {name!r} in the checkpoint {self.path}; it has {len(what)}: "
            + some
            + (", …" if len(what) > 5 else ""),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        return f"<muster.Checkpoint {self.path}: step {self.step}, {len(self)} tensors>"


def read(path: str | os.PathLike[str], *, rank: int | None = None) -> Checkpoint:
    """Opens the checkpoint in the directory `path`. Joins no job, and asks no broker.

        checkpoint = muster.read("checkpoints/1200")
        checkpoint.step, list(checkpoint), checkpoint["w"], checkpoint.metadata["metrics"]

    path: as `muster checkpoints` and Client.checkpoints() name it.
    rank: reads only what that rank saved. None = what all ranks saved: a tensor that was saved in
      parts is put together, and a tensor that differs between the ranks is refused.
    This call reads the manifest and the head of each shard, and blocks for the disk. A tensor or
    file is read when it is asked for, and its sums are checked: a tensor by those of its own
    pieces. The checkpoint may be deleted meanwhile; `muster pin` keeps it.
    Raises NotFoundError for a checkpoint that is not there, RestoreError for one that is
    unfinished, and CorruptError for damage; its text names the file and the tensor.
    """
    return Checkpoint(path, rank=rank)
