"""Tasks in Python: results, values of each worker, failures, a lost worker, and the ends of both
sides.
"""

import os
import signal
import socket
import subprocess
import time

import pytest
from conftest import await_that
from interrupted import DEAF, IDLE
from test_node import line_with

import muster


@pytest.fixture
def coordinator(world):
    with muster.Coordinator(broker=world.address, job="job") as made:
        yield made


@pytest.fixture
def worker(world):
    """Starts a worker of an index."""
    started = []

    def start(index=0):
        process = world.python("worker.py", index)
        started.append(process)
        line_with(process, "serves")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_tasks_run_on_workers_and_give_their_results(coordinator, worker):
    workers = [worker(0), worker(1)]
    values = [coordinator.schedule("square", str(number).encode()) for number in range(20)]
    coordinator.join(60)
    assert [int(value.fetch()) for value in values] == [number**2 for number in range(20)]
    assert coordinator.done() and coordinator.scheduled == values[-1].id == 20
    for process in workers:
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and "served" in text and "foreign threads: []" in text, text


def test_each_worker_makes_its_own_value(coordinator, worker):
    worker()
    base = coordinator.per_worker("base", b"100")
    value = coordinator.schedule("adds", b"7", per_worker=[base])
    assert value.fetch(60) == b"107"


def test_an_exception_fails_the_task_with_its_text_and_then_everything_goes_on(coordinator, worker):
    worker()
    failed = coordinator.schedule("raises", b"muster")
    with pytest.raises(muster.TaskError, match="ValueError: no such word: muster") as caught:
        coordinator.join(60)
    assert (caught.value.task, caught.value.code, caught.value.name) == (1, 1, "MUSTER_E_TASK")
    with pytest.raises(muster.TaskError, match="no such word"):
        failed.fetch(60)
    assert coordinator.schedule("square", b"5").fetch(60) == b"25"
    coordinator.schedule("words")
    with pytest.raises(muster.TaskError, match="the result of 'words' is a int; give bytes"):
        coordinator.join(60)


def test_the_task_of_a_killed_worker_goes_to_another(coordinator, worker):
    first = worker(0)
    value = coordinator.schedule("waits")
    line_with(first, "waits, attempt 1")
    worker(1)
    first.kill()
    assert value.fetch(60) == b"1 2"


def test_a_cancelled_task_is_told_so(coordinator, worker):
    process = worker()
    value = coordinator.schedule("waits")
    line_with(process, "waits, attempt 1")
    value.cancel()
    with pytest.raises(muster.TaskError) as caught:
        value.fetch(60)
    assert caught.value.name == "MUSTER_E_CANCELLED"


def test_a_queue_outlives_its_coordinator(world, worker):
    with muster.Coordinator(broker=world.address, job="job") as first:
        first.schedule("square", b"6")
        first.flush(60)
    worker()
    with muster.Coordinator(broker=world.address, job="job") as second:
        assert second.value(1).fetch(60) == b"36"
        second.release()
    with pytest.raises(muster.ArgumentError, match="muster.Coordinator is closed"):
        second.done()
    with muster.Coordinator(broker=world.address, job="job", fresh=True) as third:
        assert third.scheduled == 0


def interrupted(process):
    """It ends by Ctrl-C, within a second."""
    time.sleep(0.3)  # into the call: from outside nobody sees it
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 1.0, text
    return text


@pytest.mark.parametrize("what", IDLE)
def test_A6_ctrl_c_ends_a_wait_of_a_coordinator_within_a_second(world, what):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        env = {"MUSTER_BROKER": f"tcp://127.0.0.1:{port}"} if what == "open" else {}
        process = world.python("coordinate.py", what, env=env)
        line_with(process, "blocks")
        if what != "open":
            await_that("the task", lambda: world.client.tasks("job"))
        text = interrupted(process)
    assert "KeyboardInterrupt after" in text and "foreign threads: []" in text, text  # A9
    assert process.returncode == 130


@pytest.mark.parametrize("what", DEAF)
def test_A6_ctrl_c_ends_a_coordinator_within_a_second_while_the_broker_sleeps(world, what):
    process = world.python("coordinate.py", what, stdin=subprocess.PIPE)
    line_with(process, "blocks" if what == "join" else "sleeps from here on")
    await_that("the task", lambda: world.client.tasks("job"))
    world.broker.send_signal(signal.SIGSTOP)
    try:
        if what != "join":
            process.stdin.write("go on\n")
            process.stdin.flush()
            line_with(process, "blocks")
        assert "KeyboardInterrupt after" in interrupted(process)
    finally:
        world.broker.send_signal(signal.SIGCONT)
    assert process.returncode == 130


def test_A6_ctrl_c_ends_serve_within_a_second_while_the_broker_sleeps(world, worker):
    process = worker()
    await_that("the worker", lambda: world.client.task_workers("job"))
    world.broker.send_signal(signal.SIGSTOP)
    try:
        time.sleep(0.3)  # into the call
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        line_with(process, "foreign threads: []")
        assert time.monotonic() - began < 1.0
        text, _ = process.communicate(timeout=60)  # its end waits a second for the broker
        assert time.monotonic() - began < 2.0 and "KeyboardInterrupt" in text, text
    finally:
        world.broker.send_signal(signal.SIGCONT)


def test_A6_ctrl_c_ends_a_worker_that_has_nothing_to_do_within_a_second(world, worker):
    process = worker()
    await_that("the worker", lambda: world.client.task_workers("job"))
    text = interrupted(process)
    assert "KeyboardInterrupt" in text and "foreign threads: []" in text
    assert process.returncode == -signal.SIGINT


def test_a_forked_child_has_neither(coordinator):
    value = coordinator.schedule("square", b"2")
    child = os.fork()
    if child == 0:
        try:
            coordinator.done()
        except muster.ForkedError:
            coordinator.close()
            del value
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert value.id == 1 and not coordinator.done()


def test_what_cannot_be_is_named(world, coordinator):
    with pytest.raises(muster.ArgumentTypeError, match="args is a str; give bytes"):
        coordinator.schedule("square", "3")
    with pytest.raises(muster.ArgumentTypeError, match="function is 3"):
        coordinator.schedule(3)
    with pytest.raises(muster.WaitTimeout):
        coordinator.schedule("square").fetch(0.3)
    with pytest.raises(muster.NotFoundError):
        coordinator.value(99)
    options = {"broker": world.address, "job": "job", "index": 0}
    with pytest.raises(muster.ArgumentTypeError, match="function 'f' is a int"):
        muster.Worker({"f": 5}, **options)
    with muster.Worker({}, **options) as worker:
        pass
    with pytest.raises(muster.ArgumentError, match="muster.Worker is closed"):
        worker.serve()
    with pytest.raises(muster.BrokerError):
        muster.Coordinator(broker="tcp://127.0.0.1:1", job="job", connect_timeout=0.2)
