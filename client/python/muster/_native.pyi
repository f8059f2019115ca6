"""The C library, as cffi gives it: `lib` has every function and constant of <muster/muster.h>."""

from typing import Any

ffi: Any
lib: Any
