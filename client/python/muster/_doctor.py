"""`python -m muster doctor`: what a job of this environment would find, one line each."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator

from . import _framework, _native
from ._client import Client
from ._errors import BrokerError, Error, error_of, new_error
from ._native import ffi, lib
from ._signals import shield


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what mends it (None = it is well)."""

    what: str
    text: str
    mend: str | None = None

    def __str__(self) -> str:
        line = f"{'ok' if self.mend is None else 'MEND':4}  {self.what:9}  {self.text}"
        return line if self.mend is None else f"{line}: {self.mend}"


def _library() -> Finding:
    version = ffi.string(lib.muster_version()).decode()
    return Finding("library", f"muster {version}, {_native.__file__}")


def _programs() -> Finding:
    beside = os.path.dirname(sys.executable)
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    found = {name: shutil.which(name, path=path) for name in ("muster", "musterd")}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        return Finding(
            "programs",
            f"{' and '.join(missing)} not found",
            "install muster on this host, or add its folder to PATH; a host with a broker "
            "elsewhere needs only `muster`",
        )
    return Finding("programs", ", ".join(str(place) for place in found.values()))


def _broker(address: str | None) -> Finding:
    try:
        client = Client(address, timeout=3)
    except Error as error:
        what, _, mend = error.text.partition(": ")
        return Finding("broker", what, mend or error.advice)
    with client:
        place = client.place
        if client.is_database:
            return Finding(
                "broker",
                f"{place} is a database, and a job needs a broker",
                "start `musterd`, or set MUSTER_BROKER to the address of one elsewhere",
            )
        try:
            told, jobs = client.broker(), client.jobs()
        except BrokerError as error:
            return Finding(
                "broker",
                error.text if "," in place else f"nobody answers at {place}",
                "start `musterd --listen` there, or correct MUSTER_BROKER",
            )
        except Error as error:
            return Finding("broker", f"{place}: {error.text}", error.advice)
    return Finding("broker", f"{place}, musterd {told['version']}, {len(jobs)} jobs")


def _identity() -> Finding:
    told, error = ffi.new("struct muster_identity *"), new_error()
    status = lib.muster_identity_read(told, ffi.sizeof(told[0]), error)
    if status != lib.MUSTER_OK:
        return Finding("identity", error_of(status, error).text, "see muster-environment(7)")
    job = ffi.string(told.job).decode()
    launcher = ffi.string(told.launcher).decode()
    text = f"rank {told.rank} of {told.world_size}, job {job or 'without a name'}, by {launcher}"
    if launcher == "single":
        text = f"no launcher, so rank 0 of 1, job {job or 'without a name'}"
        if not job:  # nothing runs yet that would need one
            text = f"{text}; `muster run --job` or MUSTER_JOB gives one"
    elif not job:
        return Finding("identity", text, "set MUSTER_JOB, or start it by `muster run`")
    return Finding("identity", text)


def _signals() -> Finding:
    """Of this interpreter as it stands: called in a program, it tells who took the signal."""
    owner = signal.getsignal(signal.SIGTERM)
    if signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return Finding(
            "SIGTERM",
            "is blocked, so muster would not hear of it",
            "start the program with SIGTERM unblocked, as `muster run` does",
        )
    if owner is signal.SIG_IGN:
        return Finding("SIGTERM", "this process was started with it ignored; an open node hears it")
    if owner is signal.SIG_DFL:
        return Finding("SIGTERM", "nobody handles it yet; an open node does")
    name = getattr(owner, "__qualname__", None) or "a handler that is not Python's"
    return Finding(
        "SIGTERM",
        f"{getattr(owner, '__module__', '?')}.{name} handles it; an open node handles it first, and "
        "then calls that handler",
    )


def _shielded_helper(go: int, told: int) -> None:
    """In a forked child, which it ends."""
    try:
        shield()
        os.write(told, b"1")
        os.read(go, 1)
        os.write(told, b"2")
    finally:
        os._exit(0)


def _shield() -> Finding:
    """A helper process with the shield gets a SIGTERM that is not its parent's."""
    (go_end, go), (told, told_end) = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:
        _shielded_helper(go_end, told_end)
    os.close(told_end)
    os.read(told, 1)
    stranger = os.fork()
    if stranger == 0:
        os.kill(helper, signal.SIGTERM)
        os._exit(0)
    os.waitpid(stranger, 0)
    os.write(go, b"1")  # the signal comes first: it is pending
    lives = os.read(told, 1) == b"2"
    os.waitpid(helper, 0)
    for end in (go_end, go, told):
        os.close(end)
    if lives:
        return Finding("shield", "a DataLoader worker with muster.shield outlives a group's SIGTERM")
    return Finding(
        "shield",
        "a helper process died of SIGTERM in spite of it",
        "report it to the project with the name of this system",
    )


def _write_in(place: pathlib.Path) -> None:
    """As a checkpoint comes to be: a new directory, a synced file, the final name."""
    with tempfile.TemporaryDirectory(prefix=".muster-doctor-", dir=place) as made:
        file = pathlib.Path(made, "file")
        with file.open("wb") as written:
            written.write(b"muster")
            os.fsync(written.fileno())
        file.rename(pathlib.Path(made, "renamed"))


def _directory(directory: str | None) -> Finding:
    told = directory or os.environ.get("MUSTER_CHECKPOINT_DIR")
    if not told:
        return Finding(
            "directory",
            "nobody says where checkpoints go",
            "set MUSTER_CHECKPOINT_DIR to a directory that all hosts share, or give --directory",
        )
    place = pathlib.Path(told).absolute()
    where = next(one for one in (place, *place.parents) if one.exists())
    try:
        _write_in(where)
    except OSError as error:
        return Finding(
            "directory",
            f"{where} cannot hold a checkpoint ({error.strerror})",
            "give a directory that this user may write, on a disk with room",
        )
    owner = place / ".muster" / "JOB"
    job = f", of job {owner.read_text().splitlines()[0]}" if owner.is_file() else ""
    room = shutil.disk_usage(where).free / 1e9
    text = f"{place}{job}, {room:.1f} GB free"
    return Finding("directory", text if where == place else f"{text}; it will be made")


def _frameworks() -> Iterator[Finding]:
    for name, (tested, oldest) in _framework.TESTED.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if _framework.is_too_old(name, version):
            text = f"{version}, and muster needs {oldest} or later"
            yield Finding(name, text, f"pip install '{name}=={tested}.*'")
        elif _framework.is_tested(name, version):
            yield Finding(name, version)
        else:
            yield Finding(
                name,
                f"{version}, and muster was tested with {tested}",
                "preempt and resume a short run of yours before you rely on it",
            )


def examine(broker: str | None = None, directory: str | None = None) -> list[Finding]:
    """All findings about this environment and process. Opens no node, and changes nothing."""
    looks: list[Callable[[], Finding]] = [
        _library,
        _programs,
        lambda: _broker(broker),
        _identity,
        _signals,
        _shield,
        lambda: _directory(directory),
    ]
    return [*(look() for look in looks), *_frameworks()]
