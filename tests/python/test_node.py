"""A node in Python: callables, exceptions, Ctrl-C, fork, and the ends of a process."""

import json
import os
import random
import signal
import socket
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAMS, await_that
from interrupted import JOINS, QUESTIONS, SILENT, SLEEPS, SLOW


def line_with(process, text):
    """The output up to the line with this text."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    pytest.fail(f"{text!r} never came:\n{''.join(lines)}")


def test_A9_callables_run_on_the_main_thread_and_finally_and_atexit_run(world):
    launch = world.run(1, "train_callable.py", 600, 0.02)
    world.await_step(10)
    world.muster("notify", "--job", "job", "0")
    launch.finish()
    log = launch.log()
    assert log.count("saved") == 1 and log.count("restored") == 1 and "finished 600" in log
    launch.ended(1, launches=2)


def test_A7_an_exception_in_save_is_told_here_in_why_and_in_the_error_file(world, tmp_path):
    told = tmp_path / "error.json"
    process = world.python(
        "train_callable.py", 100000, 0.005, "save-raises", env={"MUSTER_ERROR_FILE": str(told)}
    )
    world.await_step(5)
    world.muster("notify", "--job", "job", "0")
    log, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "RuntimeError: CUDA out of memory" in log and "muster: " in log and "finally ran" in log
    assert "RuntimeError: CUDA out of memory" in world.muster("why", "--job", "job")
    assert "RuntimeError: CUDA out of memory" in told.read_text()


def test_A7_an_exception_of_the_loop_is_told_to_the_ranks_in_why_and_in_the_error_file(world):
    launch = world.run(2, "train_suspects.py", "raises", options=("--max-failures", "0"))
    assert launch.end() == 1
    told = "ValueError: bad batch 17"
    assert told in launch.log(1) and launch.log(1).count("Traceback") == 1
    assert "PeerError: rank 1 failed" in launch.log(0) and told in launch.log(0), launch.log(0)
    why = world.muster("why", "--job", "job")
    assert told in why and "rank 1" in why, why
    written = json.loads((launch.output / "1.error.json").read_text())
    assert told in json.dumps(written), written
    assert told in launch.stderr and "1.error.json" in launch.stderr, launch.stderr


@pytest.mark.parametrize("killed", [True, False])
def test_A7_who_suspects_a_peer_is_blamed_only_where_nobody_is_gone(world, killed):
    launch = world.run(
        2, "train_suspects.py", "killed" if killed else "alive", options=("--max-failures", "0")
    )
    assert launch.end() != 0
    (row,) = world.client.generations("job")
    if killed:
        assert "PeerError of rank 1" in launch.log(0)
        assert row.error_rank == 1 and "Connection reset" not in world.muster("why", "--job", "job")
    else:
        assert "StepError: Connection reset by peer" in launch.log(0)
        assert row.error_rank == 0 and "Connection reset" in world.muster("why", "--job", "job")


@pytest.mark.parametrize("how", ["stopped", "alive"])
def test_who_suspects_a_peer_that_no_supervisor_watches_is_told_as_soon_as_it_is_known(world, how):
    ranks = [
        world.python(
            "train_suspects.py", how, env={"MUSTER_WORLD_SIZE": "2", "MUSTER_RANK": str(rank)}
        )
        for rank in range(2)
    ]
    try:
        output, _ = ranks[0].communicate(timeout=PATIENCE)
    finally:
        for process in ranks:
            process.kill()
    (row,) = world.client.generations("job")
    if how == "stopped":
        assert "PeerError of rank 1" in output
        assert row.error_rank == 1
    else:
        assert "StepError: Connection reset by peer" in output
        assert row.error_rank == 0
    ranks[1].communicate()


def test_an_exception_in_restore_is_told(world):
    launch = world.run(1, "train_callable.py", 100000, 0.005)
    world.await_step(5)
    os.kill(launch.process.pid, signal.SIGTERM)
    assert launch.end() == 42
    launch = world.run(
        1, "train_callable.py", 100000, 0.005, "restore-raises", options=("--max-failures", "0")
    )
    assert launch.end() == 1
    assert (
        "KeyError: 'no such layer'" in launch.log() and "was not restored at rank 0" in launch.log()
    )


@pytest.mark.parametrize("what", [*SILENT, "directory", *JOINS])
def test_A6_ctrl_c_ends_a_blocking_call_within_a_second(world, what):
    env = {"MUSTER_WORLD_SIZE": "2"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if what in SILENT:
            env["MUSTER_BROKER"] = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        process = world.python("wait.py", what, env=env)
        line_with(process, "blocks")
        if what in JOINS:
            await_that("the rank that waits", world.nodes)
        time.sleep(0.3)  # into the call: from outside nobody sees it
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 1.0, text
    assert process.returncode == 130 and "KeyboardInterrupt after" in text and "muster: " in text, (
        text
    )


@pytest.mark.parametrize("what", SLEEPS)
def test_A6_who_was_interrupted_waits_for_no_broker_that_sleeps(world, what):
    ranks = "1" if what == "deletes" else "2"
    process = world.python("wait.py", what, env={"MUSTER_WORLD_SIZE": ranks})
    line_with(process, "blocks")
    await_that("the rank that waits", world.nodes)
    world.broker.send_signal(signal.SIGSTOP)
    time.sleep(0.5)  # into the call
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        left = line_with(process, "KeyboardInterrupt after")
        took = time.monotonic() - began
    finally:
        world.broker.send_signal(signal.SIGCONT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and took < 1.0, (took, left, text)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_A6_ctrl_c_ends_each_question_to_a_broker_within_a_second(world, kind):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {"MUSTER_BROKER": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        text, _ = world.python("wait.py", f"each-{kind}", env=env).communicate(timeout=60)
    told = [line.split() for line in text.splitlines() if line.startswith(f"{kind}.")]
    assert {name for name, *_ in told} == QUESTIONS[kind], text
    assert all(by == "muster" and float(took) < 1.0 for _, took, by in told), text


def test_A6_ctrl_c_ends_a_reader_that_has_a_pin_while_the_broker_sleeps(world):
    world.run(1, "train_manager.py", 60, 0, world.directory / "x").finish()
    process = world.python("wait.py", "pinned")
    line_with(process, "blocks")
    world.broker.send_signal(signal.SIGSTOP)
    time.sleep(0.5)  # into the call
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    took = time.monotonic() - began
    world.broker.send_signal(signal.SIGCONT)
    assert process.returncode == 130 and took < 1.0, (took, text)


@pytest.fixture
def slow_disk(tmp_path):
    """The environment of slow_disk.py."""
    library = tmp_path / "slow_disk.so"
    source = PROGRAMS / "slow_disk.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


@pytest.mark.parametrize("what", SLOW)
def test_A6_ctrl_c_ends_a_long_restore_or_save_within_a_second(world, slow_disk, what):
    made = world.python("slow_disk.py", "make", env=slow_disk)
    text, _ = made.communicate(timeout=60)
    assert made.returncode == 0, text
    nobody = {"MUSTER_BROKER": "tcp://127.0.0.1:9"} if what == "alone" else {}
    directory = world.directory / "checkpoints"
    process = world.python("slow_disk.py", what, env={**slow_disk, **nobody}, cwd=directory)
    line_with(process, "blocks")
    time.sleep(1.0)  # into the call
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    took = time.monotonic() - began
    assert process.returncode == 130 and took < 1.0, (took, text)
    assert "muster: " in text and "was interrupted while it" in text, text
    rows = world.client.checkpoints("job")
    assert [row.step for row in rows if row.state == "committed"] == [1], rows
    names = {path.name for path in directory.iterdir()}
    assert names - {".muster"} == {"0"}, names


def test_A6_a_save_that_is_broken_off_is_not_committed_and_no_rank_waits_for_it(world, slow_disk):
    launch = world.run(
        2, "slow_disk.py", "save", options=("--max-failures", "0"), env={**slow_disk, "SLOW_RANK": "1"}
    )
    await_that("the save of rank 1", lambda: "blocks" in launch.log(1))
    time.sleep(1.0)  # into it
    (node,) = [row for row in world.nodes() if row.rank == 1]
    began = time.monotonic()
    os.kill(node.pid, signal.SIGINT)
    await_that("its KeyboardInterrupt", lambda: "KeyboardInterrupt after" in launch.log(1))
    assert time.monotonic() - began < 1.0
    launch.end()
    assert time.monotonic() - began < 5.0  # a bound of muster's own, STUCK_MS, is a minute
    assert "rank 1" in launch.log(0) and "was interrupted" in launch.log(0), launch.log(0)
    assert not [row for row in world.client.checkpoints("job") if row.state == "committed"]


def test_A6_the_other_ranks_learn_who_was_interrupted(world):
    launch = world.run(
        2, "train_numpy.py", 100000, 0.005, world.directory / "x", options=("--max-failures", "0")
    )
    nodes = world.await_step(5, ranks=2)
    os.kill(nodes[1].pid, signal.SIGINT)
    launch.end()
    assert "KeyboardInterrupt" in launch.log(1)
    assert "rank 1" in launch.log(0) and "KeyboardInterrupt" in launch.log(0)


def test_A6_ctrl_c_in_a_save_callable_ends_it_within_a_second(world):
    process = world.python("train_callable.py", 100000, 0.005, "save-waits")
    line_with(process, "ready")
    world.await_step(5)
    world.client.notify("job", 0)
    line_with(process, "the save waits")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 1.0 and "KeyboardInterrupt" in text and "finally ran" in text


def test_a_forked_child_has_no_node(world):
    process = world.python("forks.py")
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "the parent went on" in text, text


CODES = {
    "close": 0,
    "return": 0,
    "exit": 3,
    "raise": 1,
    "interrupt": -signal.SIGINT,
    "notify": 0,
    "forget": 0,
    "leak": 0,
}
UNCLOSED = ("return", "exit", "forget", "leak")


def exits_at_random_moments(world, count, beside=""):
    moments = random.Random(19)
    kinds = [
        (list(CODES)[number % len(CODES)], moments.uniform(0, 0.2)) for number in range(count)
    ]
    for start in range(0, len(kinds), 5):
        processes = [
            (
                kind,
                seconds,
                world.python(
                    "exits.py",
                    kind,
                    seconds,
                    env={
                        "MUSTER_JOB": f"exit-{start + at}",
                        "MUSTER_CHECKPOINT_DIR": f"{world.directory}/{start + at}",
                        "BESIDE": beside,
                        **({"LOGGING": "1"} if (start + at) // len(CODES) % 2 else {}),
                    },
                ),
            )
            for at, (kind, seconds) in enumerate(kinds[start : start + 5])
        ]
        for at, (kind, seconds, process) in enumerate(processes):
            text, _ = process.communicate(timeout=60)
            assert process.returncode == CODES[kind], (
                f"{kind} after {seconds} s: {process.returncode}\n{text}"
            )
            assert "Fatal Python error" not in text and "Exception ignored" not in text, text
            (row,) = world.client.nodes(f"exit-{start + at}")
            assert row.state == "left", f"{kind}: {row}\n{text}"
            assert (row.exit_code == 0) == (kind == "close") or kind == "notify", f"{kind}: {row}"
            if kind in UNCLOSED:
                (launch,) = world.client.generations(f"exit-{start + at}")
                assert "the program never closed <muster.Node rank 0 of 1>" in launch.error_text
                assert "this rank counts as failed" in text


def test_A9_50_exits_at_random_moments_neither_crash_nor_hang(world):
    exits_at_random_moments(world, 50)


def test_the_announced_end_is_told_to_all_ranks(world):
    launch = world.run(2, "train_announced.py", world.directory)
    world.await_step(5, ranks=2)
    world.client.notify("job", 1, left=7200)
    launch.finish()
    for rank in range(2):
        assert "rank 1 ends, by user, in 7" in launch.log(rank)
