"""Is the library as new as the package? In a wheel it is part of it; a distribution installs it
apart.
"""

from __future__ import annotations

import re

try:
    from ._native import ffi, lib
except ImportError as error:
    raise ImportError(
        f"muster's module muster._native does not load: {error}. Its library libmuster is older "
        "than this package, or the package is for another Python; install both from one release "
        "of muster",
        name="muster._native",
    ) from error


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def check(package: str, library: str) -> None:
    """Raises VersionError when the library is older than the one that the package was made for."""
    if _numbers(library) < _numbers(package):
        from ._errors import VersionError

        raise VersionError(
            lib.MUSTER_E_VERSION,
            f"this package is of muster {package}, and its library libmuster is {library}, which "
            "is older",
            advice=f"install libmuster {package} or later",
        )


LIBRARY: str = ffi.string(lib.muster_version()).decode()
check(ffi.string(lib.muster_py_version()).decode(), LIBRARY)
