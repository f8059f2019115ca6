"""For tests of your own program: does it go on where it was preempted?

from muster.testing import preempt

def test_my_training_resumes(tmp_path):
    outcome = preempt([sys.executable, "train.py"], ranks=2, at_step=20, directory=tmp_path)
    assert outcome.code == 0 and outcome.launches == 2
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from ._client import Client
from ._errors import Error

_JOB = "test"
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a job. code: of `muster run`, 0 = all ranks finished.

    launches: how often its ranks were started. resumed: the steps after which later launches began.
    logs: what each rank printed, over all launches. text: what `muster run` said.
    """

    code: int
    launches: int
    resumed: tuple[int, ...]
    logs: tuple[str, ...]
    text: str


def _program(name: str) -> str:
    """musterd, or muster: as MUSTERD and MUSTER say, else beside this Python, else on PATH."""
    beside = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = os.environ.get(name.upper()) or shutil.which(name, path=beside)
    if found is None:
        raise FileNotFoundError(
            f"there is no program {name} beside {sys.executable} or on PATH; install libmuster's "
            f"wheel, which has it, or set {name.upper()}"
        )
    return found


def _await(what: str, patience: float, ask: Callable[[], _T | None]) -> _T:
    until = time.monotonic() + patience
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come within {patience:.0f} s")
        time.sleep(0.02)


@contextlib.contextmanager
def _broker(directory: pathlib.Path, patience: float) -> Iterator[str]:
    """A broker of its own; gives its address."""
    port = directory / "port"
    command = [_program("musterd"), "--listen", "tcp://127.0.0.1:*", "--port-file", str(port)]
    with (directory / "musterd.log").open("w") as log:
        process = subprocess.Popen([*command, "--db", str(directory / "muster.db")], stderr=log)
    try:
        yield _await(
            "the broker's address",
            patience,
            lambda: port.read_text().strip() or None if port.exists() else None,
        ).splitlines()[0]
    finally:
        process.terminate()
        process.wait()


def preempt(
    program: Sequence[str | os.PathLike[str]],
    *,
    directory: str | os.PathLike[str],
    ranks: int = 1,
    at_step: int = 10,
    rank: int = 0,
    times: int = 1,
    patience: float = 60.0,
    env: Mapping[str, str] | None = None,
) -> Outcome:
    """Runs a program as a job, and takes one of its ranks away; then it is started again.

    program: its words, as [sys.executable, "train.py"]. directory: empty, for the broker's files,
    the logs and the checkpoints (MUSTER_CHECKPOINT_DIR). at_step: each launch is preempted once the
    broker has heard that all ranks did this many steps in it. That takes up to a second, in which
    they go on, so let the program run for longer. rank: the one whose end is announced. times: how often.
    patience: seconds for all of it. env: more of the environment.
    Raises TimeoutError when the program hangs or takes no steps; it is killed then.
    """
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience
    with _broker(folder, patience) as address, Client(address) as client:
        around = {name: text for name, text in os.environ.items() if not name.startswith("MUSTER_")}
        around |= {"MUSTER_BROKER": address, "MUSTER_CHECKPOINT_DIR": str(folder / "checkpoints")}
        command = [_program("muster"), "run", "-n", str(ranks), "--job", _JOB]
        command += ["--output", str(folder / "logs"), "--max-failures", "0", "--"]
        command += [os.fspath(word) for word in program]
        process = subprocess.Popen(
            command, env={**around, **(env or {})}, stderr=subprocess.PIPE, text=True
        )
        try:
            for launch in range(1, times + 1):
                _preempt_once(client, process, launch, ranks, at_step, rank, until)
            _, text = process.communicate(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(
                f"the program did not end within {patience:.0f} s; see {folder / 'logs'}"
            ) from None
        finally:
            if process.poll() is None:
                process.kill()  # its ranks go with it
                process.communicate()
        began = sorted(client.generations(_JOB), key=lambda row: row.generation)
    return Outcome(
        code=process.returncode,
        launches=len(began),
        resumed=tuple(row.resume_step for row in began[1:]),
        logs=tuple(_log(folder / "logs" / f"{at}.log") for at in range(ranks)),
        text=text,
    )


def _log(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _preempt_once(
    client: Client,
    process: subprocess.Popen[str],
    launch: int,
    ranks: int,
    at_step: int,
    rank: int,
    until: float,
) -> None:
    def there() -> bool | None:
        if process.poll() is not None:
            return False
        began = client.generations(_JOB)
        if len(began) < launch:
            return None
        newest = max(began, key=lambda row: row.generation)
        nodes = [row for row in client.nodes(_JOB) if row.generation == newest.generation]
        step = max(newest.resume_step, 0) + at_step
        return (len(nodes) == ranks and all(row.done >= step for row in nodes)) or None

    what = f"step {at_step} of launch {launch} on {ranks} ranks"
    if _await(what, max(0.0, until - time.monotonic()), there):
        with contextlib.suppress(Error):  # it has just ended: the outcome tells of fewer launches
            client.notify(_JOB, rank, text="taken away by muster.testing")


__all__ = ["Outcome", "preempt"]
