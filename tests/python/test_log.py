"""C11: the library's log is in Python's logging, and no Python runs on the library's threads."""

import logging
import os
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


def test_lines_that_logging_is_too_slow_for_are_counted_and_stop_nobody(caplog):
    options = ffi.new("struct muster_node_options *")
    lines = _log.Lines(options)
    gate = threading.Event()
    caplog.handler.addFilter(lambda record: gate.wait(60))
    count, began = 20000, time.monotonic()
    for number in range(count):
        options.log(1, b"line %d" % number, ffi.NULL)
    assert time.monotonic() - began < 30
    gate.set()
    (reader,) = threads()
    lines.end()
    reader.join(60)
    assert not reader.is_alive()
    texts = [record.getMessage() for record in caplog.records]
    lost = sum(int(text.split()[0]) for text in texts if "are lost" in text)
    came = [text for text in texts if text.startswith("line ")]
    assert came[0] == "line 0" and lost > 0 and len(came) + lost == count


def test_a_handler_that_hangs_does_not_hang_close(caplog):
    lines = _log.Lines(ffi.new("struct muster_node_options *"))
    gate = threading.Event()
    caplog.handler.addFilter(lambda record: gate.wait(60))
    lib.muster_py_log(1, b"line", ffi.NULL)
    (reader,) = threads()
    began = time.monotonic()
    lines.end()
    assert 1 < time.monotonic() - began < 20 and reader.is_alive()
    gate.set()
    await_that("its end", lambda: not reader.is_alive())


def test_a_forked_child_reads_no_log_of_its_parent_s(caplog):
    lines = _log.Lines(ffi.new("struct muster_node_options *"))
    child = os.fork()
    if child == 0:
        lines.end()  # does nothing here
        own = _log.Lines(ffi.new("struct muster_node_options *"))
        lib.muster_py_log(1, b"of the child", ffi.NULL)
        own.end()
        os._exit(0 if "of the child" in caplog.text else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lines.end()
    assert "of the child" not in caplog.text
