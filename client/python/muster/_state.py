"""TrainingState: the arrays that a checkpoint holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._errors import Error, check, encoded, integer, natural, new_error, wrong, wrong_type
from ._native import ffi, lib

_DTYPES = {
    "bool": lib.MUSTER_DTYPE_BOOL,
    "int8": lib.MUSTER_DTYPE_I8,
    "uint8": lib.MUSTER_DTYPE_U8,
    "int16": lib.MUSTER_DTYPE_I16,
    "uint16": lib.MUSTER_DTYPE_U16,
    "float16": lib.MUSTER_DTYPE_F16,
    "bfloat16": lib.MUSTER_DTYPE_BF16,
    "int32": lib.MUSTER_DTYPE_I32,
    "uint32": lib.MUSTER_DTYPE_U32,
    "float32": lib.MUSTER_DTYPE_F32,
    "int64": lib.MUSTER_DTYPE_I64,
    "uint64": lib.MUSTER_DTYPE_U64,
    "float64": lib.MUSTER_DTYPE_F64,
    "complex64": lib.MUSTER_DTYPE_C64,
    "float8_e4m3fn": lib.MUSTER_DTYPE_F8_E4M3,
    "float8_e5m2": lib.MUSTER_DTYPE_F8_E5M2,
    "float8_e8m0fnu": lib.MUSTER_DTYPE_F8_E8M0,
}


def _bytes_of(array: Any, dtype: str) -> Any:
    """The array as bytes, where Python's buffers have no word for its type of ml_dtypes."""
    if dtype.startswith(("bfloat", "float8")) and array.flags.c_contiguous:
        return array.reshape(-1).view("uint8")
    return array


def _name(name: str) -> bytes:
    return encoded("the name of a state", name)


def _tensor_memory(name: str, tensor: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and address of a tensor of PyTorch on the CPU."""
    if hasattr(tensor, "to_local"):
        raise wrong_type(
            f"state {name!r} is a {type(tensor).__name__}, of which each rank has a part; save it "
            "by muster.dcp"
        )
    try:
        if tensor.is_conj() or tensor.is_neg():
            raise wrong(f"state {name!r} is a conjugated view; give its resolve_conj()")
        if not tensor.is_contiguous():
            raise wrong(f"state {name!r} is not contiguous; give its contiguous()")
        shape, address = tuple(tensor.shape), tensor.data_ptr()
    except Error:
        raise
    except (RuntimeError, ValueError) as error:
        raise _without_memory(name, tensor, str(error).partition("\n")[0]) from None
    if address == 0 and tensor.numel() > 0:
        raise _without_memory(name, tensor, "its address is 0")
    return shape, ffi.cast("void *", address)


def _without_memory(name: str, tensor: Any, why: str) -> Error:
    return wrong_type(
        f"state {name!r} is a {type(tensor).__name__} without plain memory ({why}); give a dense "
        "CPU tensor"
    )


def _memory(name: str, array: Any) -> tuple[int, tuple[int, ...], Any]:
    """dtype, shape and a pointer that keeps the array's memory; nothing is copied."""
    dtype = str(getattr(array, "dtype", None)).removeprefix("torch.")
    if getattr(getattr(array, "dtype", None), "byteorder", "=") == ">":
        raise wrong(f"state {name!r} is big-endian; give it in native byte order")
    if dtype not in _DTYPES:
        of = f" with dtype {dtype}" if hasattr(array, "dtype") else ""
        raise wrong_type(
            f"state {name!r} is a {type(array).__name__}{of}; give an array or CPU tensor of "
            + ", ".join(_DTYPES)
        )
    if hasattr(array, "data_ptr"):
        if array.device.type != "cpu":
            raise wrong(
                f"state {name!r} is on {array.device}, where muster reads no memory; give a CPU "
                "tensor"
            )
        return _DTYPES[dtype], *_tensor_memory(name, array)
    try:
        pointer = ffi.from_buffer(_bytes_of(array, dtype), require_writable=True)
    except (BufferError, ValueError, TypeError) as error:
        raise wrong(
            f"state {name!r} cannot be restored in place ({error}); give a C-contiguous, "
            "writable array"
        ) from None
    return _DTYPES[dtype], tuple(array.shape), pointer


def _facts(dtype: int, shape: tuple[int, ...], pointer: Any) -> tuple[int, tuple[int, ...], int]:
    """What C was told of an array: type, shape, and where it is."""
    return dtype, shape, int(ffi.cast("uintptr_t", pointer))


class TrainingState(Mapping[str, Any]):
    """Named arrays that muster saves as safetensors, and fills in place at a restore.

    NumPy arrays and CPU tensors of PyTorch, by name; their memory is borrowed, never copied: change
    them in place (`state["w"] -= 0.1 * gradient`, or `state["w"] = new`, which copies). A number is
    an array of shape ().

        state = TrainingState(w=numpy.zeros(10), step=numpy.zeros((), "int64"))
    """

    def __init__(self, arrays: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self._arrays: dict[str, Any] = {}
        self._pointers: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}  # where each is; None: it cannot move
        error = new_error()
        box = ffi.new("muster_state_t **")
        check(lib.muster_state_create(box, error), error)
        self._box = box
        if not isinstance(arrays, (Mapping, type(None))):
            raise wrong_type(f"state is a {type(arrays).__name__}; give a dict of arrays by name")
        for name, array in {**(arrays or {}), **named}.items():
            self.add(name, array)

    def add(self, name: str, array: Any, *, own: bool = False) -> None:
        """Adds one array. Raises muster.Error for a name that is taken or longer than 255 bytes.

        own: it is each rank's own, such as its random numbers. Layout "replicated" refuses it by
          name. A restore refuses it at a rank whose number saved none. The mark is not saved: mark
          it in the program that restores, too. A reader or an observer is no rank, and reads what
          is there.
        """
        dtype, shape, pointer = _memory(name, array)
        error = new_error()
        check(
            lib.muster_state_add_tensor(
                self._box[0], _name(name), dtype, list(shape), len(shape), pointer, error
            ),
            error,
        )
        self._keep(name, array, pointer, _facts(dtype, shape, pointer), own)

    def add_split(
        self, name: str, array: Any, whole_shape: tuple[int, ...], axis: int, begin: int
    ) -> None:
        """Adds this rank's part of an array (layout "sharded"): its slices from `begin` on along
        `axis`.

        Any number of ranks can restore such a checkpoint. Raises muster.Error as add does, and
        ArgumentError if the part does not lie inside `whole_shape`.
        """
        dtype, shape, pointer = _memory(name, array)
        if not isinstance(whole_shape, Sequence):
            raise wrong_type(f"whole_shape of state {name!r} is {whole_shape!r}; give a tuple")
        what = f"whole_shape of state {name!r}"
        whole = tuple(integer(what, length, bits=62) for length in whole_shape)
        axis, begin = integer("axis", axis), integer("begin", begin, bits=62)
        if len(shape) != len(whole) or not 0 <= axis < len(whole):
            raise wrong(
                f"state {name!r} of shape {shape} is no part of {whole} along axis {axis}"
            )
        if shape[:axis] + shape[axis + 1 :] != whole[:axis] + whole[axis + 1 :]:
            raise wrong(
                f"state {name!r} of shape {shape} differs from {whole} in other axes than {axis}"
            )
        error = new_error()
        check(
            lib.muster_state_add_split(
                self._box[0],
                _name(name),
                dtype,
                list(whole),
                len(whole),
                axis,
                begin,
                shape[axis],
                pointer,
                error,
            ),
            error,
        )
        self._keep(name, array, pointer, _facts(dtype, shape, pointer))

    def add_bytes(self, name: str, data: bytearray | memoryview, *, own: bool = False) -> None:
        """Adds opaque bytes of a fixed size, filled in place at a restore. own and errors: as of
        add.
        """
        try:
            pointer = ffi.from_buffer(data, require_writable=True)
        except (BufferError, ValueError, TypeError):
            raise wrong_type(
                f"state {name!r} is a {type(data).__name__} that cannot be restored in place; give "
                "a bytearray"
            ) from None
        error = new_error()
        check(
            lib.muster_state_add_blob(self._box[0], _name(name), pointer, len(pointer), error),
            error,
        )
        self._keep(name, data, pointer, None, own)  # a buffer in use cannot move

    def remove(self, name: str) -> None:
        """Takes one array out. Raises muster.Error when there is none of that name."""
        error = new_error()
        check(lib.muster_state_remove(self._box[0], _name(name), error), error)
        del self._arrays[name], self._pointers[name], self._facts[name]

    @property
    def size_bytes(self) -> int:
        """The bytes of all arrays, which a checkpoint has plus its header."""
        return int(lib.muster_state_size_bytes(self._box[0]))

    def _keep(self, name: str, array: Any, pointer: Any, facts: Any, own: bool = False) -> None:
        if own:
            error = new_error()
            check(lib.muster_state_set_own(self._box[0], _name(name), error), error)
        self._arrays[name] = array
        self._pointers[name] = pointer
        self._facts[name] = facts

    def check(self) -> None:
        """Is the memory of each array where it was when it was added? muster asks before it reads or
        fills them.

        Raises ArgumentError of one that got other memory since, as by `tensor.data = ...`.
        """
        for name, array in self._arrays.items():
            if self._moved(name, array):
                raise wrong(
                    f"state {name!r} has other memory than when it was added, or another shape or "
                    "type; change it in place, or remove it and add it again"
                )

    def _moved(self, name: str, array: Any) -> bool:
        was = self._facts[name]
        if was is None:
            return False
        try:
            return bool(_facts(*_memory(name, array)) != was)
        except Error:
            return True

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Copies value into the array of that name; add() is for a new one. Raises ArgumentError
        for a value that does not fit.
        """
        array = self._arrays[name]
        if value is array:  # as `state["w"] -= 1` gives it back
            return
        try:
            array[...] = value
        except (ValueError, TypeError, OverflowError, RuntimeError) as error:
            if type(error).__name__ == "OutOfMemoryError":
                raise  # PyTorch's
            raise wrong(f"state {name!r} cannot take this value: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return int(lib.muster_state_count(self._box[0]))

    def __del__(self) -> None:
        if hasattr(self, "_box"):
            lib.muster_state_destroy(self._box)


def split_range(length: int, rank: int, world_size: int) -> tuple[int, int]:
    """(begin, count): the usual part of `length` slices for a rank."""
    length, rank = natural("length", length), natural("rank", rank, bits=31)
    world_size = natural("world_size", world_size, bits=31)
    if rank >= world_size:
        raise wrong(f"rank is {rank} of a world of {world_size}; give 0 to world_size - 1")
    begin, count = ffi.new("int64_t *"), ffi.new("int64_t *")
    lib.muster_split_range(length, rank, world_size, begin, count)
    return begin[0], count[0]
