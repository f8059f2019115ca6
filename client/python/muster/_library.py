"""Is the library as new as the package? In a wheel it is part of it; a distribution installs it
apart.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import re

from ._exceptions import VersionError

_STATUS = 5  # MUSTER_E_VERSION


def _found(module: str | None) -> str | None:
    """The path of the libmuster that the loader gives this module, with its version if it tells one.
    None: the module needs none, or there is none.
    """
    path = None
    try:
        needed = re.search(rb"libmuster\.so[.\d]*", pathlib.Path(module or "").read_bytes())
        if needed is None:
            return None
        load = ctypes.CDLL(None).dlopen
        load.restype, load.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
        # Lazily, so that a name that is missing is no obstacle. Nothing of the module is called.
        load(os.fsencode(module or ""), os.RTLD_LAZY) or load(needed.group(), os.RTLD_LAZY)
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        path = next(line.split(maxsplit=5)[5] for line in maps if "/libmuster.so" in line)
        version = ctypes.CDLL(path).muster_version
    except AttributeError:
        return path and f"{path}, which is older than muster 0.2"
    except (OSError, StopIteration):
        return None
    version.restype = ctypes.c_char_p
    return f"{path} of muster {version().decode()}"


def unloaded(error: ImportError) -> VersionError:
    """The module muster._native does not load, for this reason."""
    module = error.path or "muster._native"
    if isinstance(error, ModuleNotFoundError):
        return VersionError(
            _STATUS,
            f"the folder {pathlib.Path(__file__).parent} has no compiled module muster._native",
            advice="install the package; its sources do not run unbuilt",
        )
    found = _found(error.path)
    if found is None:
        return VersionError(
            _STATUS,
            f"{module} does not load: {error}",
            advice="the package is for another system or Python; install one for this",
        )
    return VersionError(
        _STATUS,
        f"{module} does not load with the library {found}: {error}",
        advice="install that library from the same release as this package",
    )


try:
    from ._native import ffi, lib
except ImportError as error:
    raise unloaded(error) from error


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def check(package: str, library: str) -> None:
    """Raises VersionError when the library is older than the one that the package was made for."""
    if _numbers(library) < _numbers(package):
        raise VersionError(
            _STATUS,
            f"this package is of muster {package}, and its library libmuster is {library}, which "
            "is older",
            advice=f"install libmuster {package} or later",
        )


LIBRARY: str = ffi.string(lib.muster_version()).decode()
check(ffi.string(lib.muster_py_version()).decode(), LIBRARY)
