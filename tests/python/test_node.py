"""A node in Python: callables, exceptions, Ctrl-C, fork, and the ends of a process."""

import json
import os
import random
import re
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
    "return": 0,
    "exit": 3,
    "raise": 1,
    "interrupt": -signal.SIGINT,
    "notify": 0,
    "forget": 0,
    "leak": 0,
    "preempt": 42,
    "term": 42,
}
UNCLOSED = ("return", "exit", "forget", "leak")
# It ended while the library called Python: in a look at the state, or in a wait.
IN_A_CALL = r"^(End|SystemExit: 3|the program was interrupted \(Ctrl-C\) in a call of muster's)$"
PREEMPTED = ("notify", "preempt", "term")  # preempted, and so it has not failed
PHASES = {"open": 0.03, "restore": 0.01, "step": 0.1, "save": 0.01}  # how long, about


def exits_at_random_moments(world, count, beside=""):
    """Runs five jobs at a time, each again and again, so that there is something to restore.

    Returns the phases in which it ended. On a loaded machine the short ones may be missed.
    """
    moments, seen, early = random.Random(19), set(), []
    ways = [(kind, phase) for phase in PHASES for kind in CODES]
    ways = (ways * (count // len(ways) + 1))[:count]
    ways = [(kind, phase, moments.uniform(0, PHASES[phase])) for kind, phase in ways]
    moments.shuffle(ways)
    jobs = [f"exit-{at}" for at in range(5)]

    def rows_of(job, pid):
        return [row for row in world.client.nodes(job) if row.pid == pid]

    for start in range(0, count, 5):
        processes = [
            world.python(
                "exits.py",
                *way,
                env={
                    "MUSTER_JOB": jobs[at],
                    "MUSTER_CHECKPOINT_DIR": f"{world.directory}/{jobs[at]}",
                    "BESIDE": beside,
                    **({"LOGGING": "1"} if (start + at) % 2 else {}),
                },
            )
            for at, way in enumerate(ways[start : start + 5])
        ]
        for at, process in enumerate(processes):
            kind, phase, seconds = ways[start + at]
            text, _ = process.communicate(timeout=60)
            told, opened = f"{kind} {seconds} s after {phase}\n{text}", "opened\n" in text
            codes = {CODES[kind]}
            if kind == "term" and not opened:
                codes.add(-signal.SIGTERM)  # muster did not listen yet
            assert process.returncode in codes, f"{process.returncode}: {told}"
            assert "Fatal Python error" not in text and "Exception ignored" not in text, told
            seen.update(re.findall("^in (.*)", text, re.M))
            if not opened:  # a broker that has just let it in may hear no more of it
                early.append((jobs[at], process.pid))
                jobs[at] = f"exit-{start + 5 + at}"
                continue
            (row,) = rows_of(jobs[at], process.pid)
            assert row.state == "left", f"{row}: {told}"
            assert row.exit_code != 0 or kind in PREEMPTED, f"{row}: {told}"
            if kind in UNCLOSED:
                unclosed = "the program never closed <muster.Node rank 0 of 1>"
                launch = world.client.generations(jobs[at])[-1]
                assert re.search(f"{unclosed}|{IN_A_CALL}", launch.error_text), launch.error_text
                assert unclosed in text and "this rank counts as failed" in text, told
    assert {"open", "step"} <= seen, seen
    for job, pid in early:
        await_that(
            f"the end of {job}",
            lambda job=job, pid=pid: all(
                row.state in ("left", "lost") for row in rows_of(job, pid)
            ),
        )
    return seen


def test_A9_50_exits_at_random_moments_neither_crash_nor_hang(world):
    exits_at_random_moments(world, 50)


def test_the_announced_end_is_told_to_all_ranks(world):
    launch = world.run(2, "train_announced.py", world.directory)
    world.await_step(5, ranks=2)
    world.client.notify("job", 1, left=7200)
    launch.finish()
    for rank in range(2):
        assert "rank 1 ends, by user, in 7" in launch.log(rank)
