"""Blocks in one call of muster's until Ctrl-C:
wait.py open | step | scope | trains | suspects | manager | client | asks | reader | pinned |
        directory | finished | saves | should_save | deletes | node | leaves |
        close

Of a Client, a Manager or a Reader it blocks in each question, and interrupts itself in each:
wait.py each-Client | each-Manager | each-Reader
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy

import muster

what = sys.argv[1]


def ready():
    print("blocks", flush=True)


def interrupts_each(thing, questions):
    """Each waits for a broker that says nothing."""
    for name, arguments in questions.items():
        began = time.monotonic()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            getattr(thing, name)(*arguments)
            time.sleep(60)
        except KeyboardInterrupt as interrupt:
            by = "muster" if getattr(interrupt, "__notes__", None) else "nobody"
            print(f"{type(thing).__name__}.{name} {time.monotonic() - began:.3f} {by}", flush=True)


ONE, TWO = ("job",), ("job", 1)
STEPS = {
    "all_steps": (),
    "latest_step": (),
    "best_step": ("loss",),
    "metadata": (1,),
    "pin": (1, 60),
    "unpin": (1,),
}
QUESTIONS = {
    "Client": {
        **dict.fromkeys(("jobs", "task_queues", "broker"), ()),
        **dict.fromkeys(("tasks", "task_workers"), ONE),
        **dict.fromkeys(("nodes", "rounds", "round", "checkpoints", "latest", "events"), ONE),
        **dict.fromkeys(("notices", "generations", "hosts", "policies", "save_now"), ONE),
        **dict.fromkeys(("attempts", "participants", "checkpoint", "shards", "files"), TWO),
        **dict.fromkeys(("incidents", "notify"), TWO),
        "cancel": ("job", "a notice"),
    },
    "Manager": STEPS,
    "Reader": {**STEPS, "next_checkpoint": (120,)},
}


def blocks_with(state):
    if what == "each-Client":
        interrupts_each(muster.Client(timeout=120), QUESTIONS["Client"])
    elif what == "each-Reader":
        with muster.Reader(job="job", timeout=120) as reader:
            interrupts_each(reader, QUESTIONS["Reader"])
    elif what == "each-Manager":
        with muster.Manager(state=state, connect_timeout=120) as manager:
            interrupts_each(manager, QUESTIONS["Manager"])
    elif what == "client":
        client = muster.Client(timeout=120)
        ready()
        client.jobs()
    elif what == "reader":
        with muster.Reader(job="job", timeout=120) as reader:
            ready()
            reader.next_checkpoint(120)
    elif what == "pinned":
        with muster.Reader(job="job", timeout=120) as reader:
            reader.pin(reader.latest_step(), lease=600)
            ready()
            while True:
                reader.latest_step()
    elif what == "directory":
        ready()
        muster.Reader(directory="nowhere", appear=120)
    elif what == "asks":
        with muster.Manager(state=state, connect_timeout=120) as manager:
            ready()
            manager.all_steps()
    elif what == "deletes":
        with muster.Manager(state=state) as manager:
            manager.restore()
            ready()
            while True:
                with contextlib.suppress(muster.NotFoundError):
                    manager.delete(7)
    elif what == "manager":
        with muster.Manager(state=state) as manager:
            ready()
            manager.restore()  # rank 1 never comes
    elif what == "open":
        ready()
        muster.Node(state=state, connect_timeout=120)
    elif what == "trains":
        with muster.Node(state=state):
            ready()
            time.sleep(60)
    elif what == "step":
        with muster.Node(state=state) as node:
            ready()
            node.step()
    elif what == "scope":
        with muster.Node(state=state) as node:
            ready()
            with node.scope():
                pass
    elif what == "suspects":
        with muster.Node(state=state) as node:
            ready()
            node.fail("Connection reset by peer", suspect=True, wait=600)
    elif what in ("node", "leaves"):
        waits_for_a_save_of_a_node(state)
    else:
        waits_for_a_save(state)


class Peer:
    """Rank 1, which joins, and never comes to the step that rank 0 saves behind its training."""

    is_this = os.environ["MUSTER_RANK"] == "1"

    def __init__(self):
        self.process = None
        if not self.is_this:
            self.process = subprocess.Popen(
                [sys.executable, *sys.argv],
                env={**os.environ, "MUSTER_RANK": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stays(self):
        if self.is_this:
            sys.stdin.read()  # until rank 0 is gone
            os._exit(1)


def waits_for_a_save_of_a_node(state):
    peer = Peer()
    with muster.Node(state=state, save_behind=True, layout="sharded", save_every=1) as node:
        peer.stays()
        node.step()
        node.step()
        assert node.is_saving and peer.process.poll() is None
        ready()
        if what == "node":
            node.wait_until_saved(120)
        node.close()


def waits_for_a_save(state):
    manager = muster.Manager(state=state, save_behind=True, layout="sharded")
    peer = Peer()
    manager.restore()
    peer.stays()
    manager.save(0, force=True)
    assert manager.is_saving and peer.process.poll() is None
    ready()
    if what == "finished":
        manager.wait_until_finished()
    if what == "saves":
        manager.save(1, force=True)
    if what == "should_save":
        manager.should_save(1, force=True)
    manager.close()


began = time.monotonic()
try:
    blocks_with(muster.TrainingState(w=numpy.zeros(4)))
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
