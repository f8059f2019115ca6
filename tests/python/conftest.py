"""A real broker, real `muster run`, real processes. What waits, waits for a condition with a
deadline.
"""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import muster

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "programs"
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
PATIENCE = 60.0  # seconds for what should take less than one, on two loaded cores
# A shell that runs these tests in the background ignores Ctrl-C for them and for their processes.
signal.signal(signal.SIGINT, signal.default_int_handler)


def await_that(what, condition, patience=PATIENCE):
    """The first true value of condition(), asked every 10 ms."""
    until = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            pytest.fail(f"{what} did not come within {patience:.0f} s")
        time.sleep(0.01)


def without_muster(example):
    """The text of an example as it was before muster, and how many of its lines muster added or
    changed, beside imports. It adds those marked `# muster`, and changes those marked `# was:`.
    """
    lines, count = [], 0
    for line in example.read_text().splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        imports = line.lstrip().startswith(("import ", "from "))
        code, _, before = line.partition("  # was: ")
        if before.endswith("."):  # another module's
            lines.append(re.sub(r"muster\.\w+\.", before, code))
        elif before:
            lines.append(indent + before)
        elif "  # muster" in line:
            if line.split("  # ")[0].endswith(":"):
                lines.append(indent + "if True:")
        else:
            lines.append(line)
            continue
        count += not imports
    return "\n".join(lines) + "\n", count


def page_blocks(section):
    """The Python programs that a section of the package's page prints; None: the sections that
    have any.
    """
    text = (HERE.parent.parent / "client/python/README.md").read_text()
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.M)
        if blocks:
            found[part.partition("\n")[0]] = blocks
    return found if section is None else found[section]


def digests(directory):
    """What each rank wrote at its end."""
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}


class Launch:
    """`muster run -n RANKS` of a program of programs/, and what becomes of it. ranks may be the
    words of a launcher that starts them itself.
    """

    def __init__(self, world, ranks, program, arguments, options, env):
        self.world = world
        self.output = world.directory / f"output-{len(world.launches)}"
        self.process = subprocess.Popen(
            [
                os.environ["MUSTER"],
                "run",
                *(["-n", str(ranks)] if isinstance(ranks, int) else ["--launcher"]),
                "--job",
                "job",
                "--output",
                str(self.output),
                *options,
                "--",
                *([sys.executable] if isinstance(ranks, int) else ranks),
                str(PROGRAMS / program),
                *map(str, arguments),
            ],
            env={**world.env, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def log(self, rank=0):
        path = self.output / f"{rank}.log"
        return path.read_text() if path.exists() else ""

    def logs(self):
        return "\n".join(path.read_text() for path in sorted(self.output.glob("*.log")))

    def ended(self, ranks, launches):
        """Each process ran its `finally` blocks and its `atexit` functions, and no Python ran on a
        thread of the library's: by programs/ends.py.
        """
        for rank in range(ranks):
            for what in ("finally ran", "atexit ran", "foreign threads: []"):
                assert self.log(rank).count(what) == launches, (rank, what, self.log(rank))
        called = set(re.findall(r"^called back on: (.*)$", self.logs(), re.M))
        assert called in ({"['MainThread']"}, {"['MainThread']", "[]"}), called

    def end(self, patience=PATIENCE):
        """Waits for its end; returns the exit code."""
        try:
            _, self.stderr = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            pytest.fail(f"muster run did not end within {patience:.0f} s:\n{self.logs()}")
        return self.process.returncode

    def finish(self, patience=PATIENCE):
        """It ends with 0."""
        code = self.end(patience)
        assert code == 0, f"muster run ended with {code}:\n{self.stderr}\n{self.logs()}"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()  # its ranks go with it
            self.process.communicate()


class World:
    """A broker, a directory, and the launches of one job."""

    def __init__(self, directory, listen="tcp://127.0.0.1:*"):
        self.directory = directory
        self.launches = []
        port_file = directory / "port"
        self.broker = subprocess.Popen(
            [
                os.environ["MUSTERD"],
                "--listen",
                listen,
                "--port-file",
                str(port_file),
                "--db",
                str(directory / "muster.db"),
            ],
            stderr=(directory / "broker.log").open("w"),
        )
        await_that("the broker's port", port_file.exists)
        self.address = await_that("the broker's address", port_file.read_text).splitlines()[0]
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MUSTER")},
            "MUSTER_BROKER": self.address,
            "MUSTER_CHECKPOINT_DIR": str(directory / "checkpoints"),
            "PYTHONPATH": f"{BUILD / 'client/python'}:{HERE}",
            "PYTHONUNBUFFERED": "1",
        }
        self.client = muster.Client(self.address)

    def run(self, ranks, program, *arguments, options=(), env=None):
        launch = Launch(self, ranks, program, arguments, options, env or {})
        self.launches.append(launch)
        return launch

    def python(self, program, *arguments, env=None, **options):
        """A program of programs/ as rank 0 of 1, without `muster run`."""
        identity = {"MUSTER_JOB": "job", "MUSTER_RANK": "0", "MUSTER_WORLD_SIZE": "1"}
        return subprocess.Popen(
            [sys.executable, str(PROGRAMS / program), *map(str, arguments)],
            env={**self.env, **identity, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def nodes(self):
        return [row for row in self.client.nodes("job") if row.state in ("joined", "restored")]

    def await_step(self, step, ranks=1, patience=PATIENCE):
        """All ranks have done so many steps."""

        def there():
            nodes = self.nodes()
            return nodes if len(nodes) == ranks and all(row.done >= step for row in nodes) else None

        return await_that(f"step {step} of {ranks} ranks", there, patience)

    def preempt_again_and_again(self, launch, ranks, strike, times=20, patience=PATIENCE):
        """Each launch does some steps; then strike(its nodes). Each time all ranks save one
        checkpoint, and the next launch goes on behind it. Then the job ends.
        """

        def there(number):
            began = self.client.generations("job")
            nodes = self.nodes()
            if len(began) != number or len(nodes) != ranks:
                return None
            resumed = max(row.resume_step for row in began)
            return nodes if all(row.done > max(resumed, 0) + 2 for row in nodes) else None

        for number in range(1, times + 1):
            strike(await_that(f"steps of launch {number}", lambda n=number: there(n), patience))
        launch.finish(patience)
        began = sorted(self.client.generations("job"), key=lambda row: row.generation)
        assert len(began) == times + 1, launch.stderr
        steps = [row.resume_step for row in began[1:]]
        saved = [row.step for row in self.client.checkpoints("job") if row.state == "committed"]
        assert steps == sorted(set(steps)) == sorted(saved), (steps, saved)

    def muster(self, *arguments, code=0):
        """The tool's output. code: what it exits with."""
        done = subprocess.run(
            [os.environ["MUSTER"], *arguments], env=self.env, text=True, capture_output=True
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout

    def end(self):
        for launch in self.launches:
            launch.kill()
        self.client.close()
        self.broker.send_signal(signal.SIGTERM)
        self.broker.wait()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.end()


@pytest.fixture
def alone(world, monkeypatch):
    """This process is rank 0 of 1 of the job."""
    for name, value in world.env.items():
        if name.startswith("MUSTER"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("MUSTER_JOB", "job")
    monkeypatch.setenv("MUSTER_RANK", "0")
    monkeypatch.setenv("MUSTER_WORLD_SIZE", "1")
    return world
