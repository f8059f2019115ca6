"""Without an address, Client and the doctor ask the place that the tool `muster` asks."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
from conftest import await_that

import muster

# Python itself may be root's alone: it becomes the other user once it has read what it needs.
ASKS = """
import os, sys
import muster
from muster import _doctor
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
if sys.argv[1:] == ["doctor"]:
    sys.exit(print(_doctor._broker(None)))
try:
    with muster.Client() as client:
        print([client.place, client.is_database, len(client.jobs())])
except muster.Error as error:
    print(type(error).__name__, error.text)
"""


class Host:
    """Of a user who is not root, for root's places are fixed and a broker may run there."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # a socket's path is short
        self.socket = self.directory / "run/muster/broker.sock"
        self.database = self.directory / "state/muster/muster.db"
        self.user = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MUSTER")},
            "XDG_RUNTIME_DIR": str(self.directory / "run"),
            "XDG_STATE_HOME": str(self.directory / "state"),
            "MUSTER_JOB": "words",
            "PATH": f"{pathlib.Path(os.environ['MUSTER']).parent}:/usr/bin",
        }
        for name in ("run", "state"):
            (self.directory / name).mkdir()
            if self.user:
                os.chown(self.directory / name, 65534, 65534)
        self.directory.chmod(0o755)
        self.broker = None

    def start(self):
        log = (self.directory / "broker.log").open("w")
        command = [os.environ["MUSTERD"]]
        self.broker = subprocess.Popen(command, env=self.env, stderr=log, **self.user)
        await_that("the broker's socket", self.socket.exists)

    def stop(self):
        self.broker.terminate()
        self.broker.wait()

    def run(self, *command, user=True, **more):
        return subprocess.run(
            command,
            env={**self.env, **more},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **(self.user if user else {}),
        )

    def python(self, *arguments, **more):
        """What muster.Client() finds, or the doctor's line about the broker."""
        done = self.run(sys.executable, "-c", ASKS, *arguments, user=False, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def host():
    made = Host()
    yield made
    if made.broker is not None and made.broker.poll() is None:
        made.stop()
    shutil.rmtree(made.directory)


def test_without_an_address_the_broker_of_this_host_is_found_as_the_tool_finds_it(host):
    host.start()
    assert host.python() == str([f"ipc://{host.socket}", False, 0])
    assert host.python("doctor").startswith(f"ok    broker     ipc://{host.socket}, musterd ")
    tool = host.run(os.environ["MUSTER"], "doctor")
    assert f"ipc://{host.socket}, musterd " in tool.stdout, tool.stdout + tool.stderr
    assert host.python(MUSTER_BROKER="", MUSTER_DB="") == str([f"ipc://{host.socket}", False, 0])


def test_without_a_broker_its_database_is_read_as_the_tool_reads_it(host):
    host.start()
    host.stop()
    host.socket.unlink(missing_ok=True)
    assert host.python() == str([str(host.database), True, 0])
    told = f"MEND  broker     {host.database} is a database, and a job needs a broker: start"
    assert told in host.python("doctor")
    assert f"{host.database} is its database" in host.run(os.environ["MUSTER"], "doctor").stdout


def test_where_nothing_is_all_that_was_looked_for_is_named_with_what_to_do(host):
    looked_for = (
        f"MUSTER_BROKER is not set, no broker runs here (no socket {host.socket}), and there is no "
        f"database {host.database}: start `musterd`, or name a broker's address"
    )
    assert host.python().startswith(f"BrokerError {looked_for}")
    assert looked_for in host.python("doctor") and host.python("doctor").startswith("MEND")
    assert looked_for in host.run(os.environ["MUSTER"], "status").stderr


def test_a_variable_that_names_no_address_is_refused_by_name(host):
    told = host.python(MUSTER_BROKER="localhost:7700")
    assert told.startswith('ArgumentError MUSTER_BROKER is "localhost:7700", which is not a broker')


def test_a_word_that_is_no_address_is_answered_with_what_one_looks_like(tmp_path):
    with pytest.raises(muster.Error, match=r"no database .*nonsense: .*tcp://host:port") as caught:
        muster.Client(str(tmp_path / "nonsense"))
    assert "--" not in caught.value.text
