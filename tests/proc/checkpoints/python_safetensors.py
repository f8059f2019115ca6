"""What the public package says of muster's files, and files of its own for muster. Works on bytes: no numpy, which
has no bf16 either. python_safetensors.py read|write PATH, with what `prog_tensors list` says on stdin."""
import ctypes
import sys

import safetensors

LONG = {"BOOL": "bool", "BF16": "bfloat16", "I": "int", "U": "uint", "F": "float"}


def long_name(dtype):
    return LONG.get(dtype) or LONG[dtype[0]] + dtype[1:]


def entries():
    for line in sys.stdin:
        name, dtype, count, shape = line.rstrip("\n").split("\t")
        key = name.encode()
        data = bytes((31 * i + 7 * len(key) + key[0]) % 256 for i in range(int(count)))
        if dtype == "BOOL":
            data = bytes(byte % 2 for byte in data)
        yield name, dtype, [int(dim) for dim in shape.split()], data


def read(path):
    with open(path, "rb") as file:
        found = dict(safetensors.deserialize(file.read()))
    sums = found.pop("muster.sums")  # the one that muster adds
    assert sums["dtype"] == "U8", sums
    for name, dtype, shape, data in entries():
        tensor = found.pop(name)
        assert (tensor["dtype"], list(tensor["shape"])) == (dtype, shape), (name, tensor)
        assert bytes(tensor["data"]) == data, name
    assert not found, found


def write(path):
    wanted = list(entries())
    if hasattr(safetensors, "TensorSpec"):
        kept = [ctypes.create_string_buffer(data, max(len(data), 1)) for *_, data in wanted]
        specs = {
            name: safetensors.TensorSpec(
                dtype=long_name(dtype), shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(data)
            )
            for (name, dtype, shape, data), buffer in zip(wanted, kept)
        }
    else:  # before 0.6
        specs = {
            name: {"dtype": long_name(dtype), "shape": shape, "data": data} for name, dtype, shape, data in wanted
        }
    safetensors.serialize_file(specs, path, {"format": "pt"})


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
