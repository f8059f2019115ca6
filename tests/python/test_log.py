"""C11: the library's log is in Python's logging, and no Python runs on the library's threads."""

import logging
import os
import signal
import subprocess
import threading
import time

import numpy
import pytest
from conftest import await_that
from test_node import line_with

import muster
from muster import _log
from muster._native import ffi, lib


def failing(context):
    raise OSError("the disk is full of cats")


def run_with_a_failing_save(told=lambda: True):
    """The warning comes when the broker has decided: who leaves at once may not hear of it."""
    with muster.Node(save=failing, restore=lambda context: None, save_every=1) as node:
        try:
            node.step()
            node.step()
        except OSError:
            await_that("the warning", told)
            raise


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "muster-log"]


def test_the_warnings_of_a_failed_save_are_records_of_logging(alone, caplog, capfd):
    seen = set()
    caplog.handler.addFilter(lambda record: seen.add(threading.current_thread()) or True)
    with pytest.raises(OSError, match="cats"):
        run_with_a_failing_save(lambda: "step 1 was NOT saved" in caplog.text)
    told = [record for record in caplog.records if record.name == "muster"]
    assert ("step 1 was NOT saved" in caplog.text) and told[0].levelno == logging.WARNING
    assert {thread.name for thread in seen} <= {"muster-log", "MainThread"} and not threads()
    assert "muster: " not in capfd.readouterr().err


def test_without_logging_they_are_lines_on_stderr(world):
    program = world.directory / "program.py"
    program.write_text(
        "import signal, sys, threading\nsignal.alarm(60)\n"
        f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import muster\n"
        "def failing(context):\n    raise OSError('the disk is full of cats')\n"
        "try:\n"
        "    with muster.Node(save=failing, restore=print, save_every=1) as node:\n"
        "        assert threading.active_count() == 1\n"
        "        try:\n            node.step()\n            node.step()\n"
        "        except OSError:\n            sys.stdin.read()\n            raise\n"
        "except OSError:\n    pass\n"
    )
    process = world.python(program, stdin=subprocess.PIPE)
    text = line_with(process, "muster: ")  # before it may leave
    process.communicate(timeout=60)
    assert text.startswith("muster: warning: rank 0: step 1 was NOT saved"), text


def test_each_open_and_close_begins_and_ends_the_thread(alone, caplog):
    for _ in range(3):
        node = muster.Node(state=muster.TrainingState(w=numpy.zeros(1)))
        assert len(threads()) == 1
        node.close()
        assert not threads()
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(muster.Error):
        muster.Node(state=muster.TrainingState(), rank=5, world_size=2)
    assert not threads() and len(os.listdir("/proc/self/fd")) == descriptors


class Scripted:
    """The library with a queue that gives these lines, and then is at its end."""

    def __init__(self, *lines):
        self.lines = list(lines)

    def __getattr__(self, name):
        return getattr(lib, name)

    def muster_events_next(self, queue, kinds, timeout_ms, told, size, error):
        if not self.lines:
            return lib.MUSTER_E_CLOSED
        assert kinds == 1 << lib.MUSTER_EVENT_LOG and size == ffi.sizeof("struct muster_event")
        told.level, told.lost, told.text = self.lines.pop(0)
        return lib.MUSTER_OK


def test_lines_that_logging_was_too_slow_for_are_counted(caplog, monkeypatch):
    monkeypatch.setattr(_log, "lib", Scripted((1, 0, b"first"), (2, 7, b"second"), (3, 0, b"\xff")))
    events = _log.Events(ffi.new("struct muster_node_options *"))
    events.end()
    await_that("its end", lambda: not threads())
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "first"),
        (logging.WARNING, "7 lines of muster's log are lost: logging was too slow for them"),
    ]


def test_a_handler_that_hangs_does_not_hang_close(alone, caplog):
    gate, inside = threading.Event(), threading.Event()
    caplog.handler.addFilter(lambda record: inside.set() or gate.wait(60))
    node = muster.Node(save=failing, restore=lambda context: None, save_every=1)
    (reader,) = threads()
    with pytest.raises(OSError):
        node.step()
        node.step()
    assert inside.wait(60)
    began = time.monotonic()
    node._end_events()
    assert 1 < time.monotonic() - began < 20 and reader.is_alive()
    gate.set()
    await_that("its end", lambda: not reader.is_alive())
    node.close(1)


def test_a_forked_child_reads_no_log_of_its_parent_s(caplog):
    events = _log.Events(ffi.new("struct muster_node_options *"))
    child = os.fork()
    if child == 0:
        events.end()  # does nothing here
        try:
            list(events.read(0))
        except muster.ForkedError:
            own = _log.Events(ffi.new("struct muster_node_options *"))
            own.end()
            os._exit(0 if not own._thread.is_alive() and list(own.read(0)) == [] else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    (reader,) = threads()
    events.end()
    assert not reader.is_alive()


# --- Node.events ------------------------------------------------------------------------------


def test_a_node_tells_notices_and_commits_as_events(alone):
    with pytest.raises(muster.Preempted):
        with muster.Node(state=muster.TrainingState(w=numpy.zeros(1)), grace=600) as node:
            began = time.monotonic()
            assert list(node.events(timeout=0.3)) == [] and time.monotonic() - began >= 0.3
            with pytest.raises(muster.ArgumentError, match="timeout is -1; give seconds from 0 on"):
                list(node.events(timeout=-1))
            node.step()
            node.notify("terminate", left=500)
            told = next(node.events(timeout=60))
            assert (told.kind, told.notice, told.rank, told.lost) == ("notice", "terminate", 0, 0)
            assert 0 < told.left <= 500 and (told.step, told.code, told.text) == (None, None, None)
            seen = []
            reader = threading.Thread(target=lambda: seen.extend(node.events()))
            reader.start()
            node.notify("terminate", left=0)
            for _ in range(1000):
                node.step()
                time.sleep(0.01)
            raise AssertionError("it was not preempted")
    reader.join(60)
    assert not reader.is_alive()  # close ends it
    assert "commit" in [event.kind for event in seen]
    assert all(event.step > 0 for event in seen if event.kind == "commit")


def test_ctrl_c_ends_a_wait_for_events(world):
    program = world.directory / "program.py"
    program.write_text(
        "import muster, numpy, threading\n"
        "with muster.Node(state=muster.TrainingState(w=numpy.zeros(1))) as node:\n"
        "    threading.Timer(0.5, print, ['waits'], {'flush': True}).start()\n"
        "    try:\n        next(node.events())\n"
        "    except KeyboardInterrupt:\n        print('told', flush=True)\n"
    )
    process = world.python(program)
    line_with(process, "waits")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert "told" in line_with(process, "told") and time.monotonic() - began < 1.0
    process.communicate(timeout=60)
