"""Comes to an object of muster's again while it is in a call: turns.py WHAT"""

import os
import signal
import sys
import threading

import numpy

import muster

what = sys.argv[1]
refused = []


def tries(call):
    try:
        call()
    except muster.Error as error:
        refused.append(error.text)
        raise


def by_signal(call):
    """The handler runs inside the call that comes next, half a second later."""
    signal.signal(signal.SIGUSR1, lambda *_: tries(call))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()


def by_thread(call):
    def run():
        try:
            tries(call)
        except muster.Error:
            os.kill(os.getpid(), signal.SIGINT)  # what waits ends by it

    threading.Timer(0.5, run).start()


def of_reader(again):
    reader = muster.Reader(job="job")
    again(reader.close if again is by_signal else reader.latest_step)
    reader.next_checkpoint(60)


def of_client(again):
    client = muster.Client(os.environ["SILENT"], timeout=60)
    again(client.close)
    client.jobs()


def of_node(again):
    node = muster.Node(state=muster.TrainingState())
    again(node.close)
    node.step()  # rank 1 never comes


def of_manager(again):
    manager = muster.Manager(state=muster.TrainingState())
    again(manager.close)
    manager.restore()


def of_coordinator(again):
    coordinator = muster.Coordinator()
    coordinator.schedule("nobody")
    again(coordinator.close)
    coordinator.join()


def of_save(inside):
    """A callable of the node calls the node."""
    os.environ["MUSTER_WORLD_SIZE"] = "1"

    def save(context):
        (context.directory / "file").write_text("text")
        tries(getattr(node, inside))

    node = muster.Node(save=save, restore=lambda context: None, save_every=2)
    for _ in range(5):
        node.step()


def of_state(change):
    os.environ["MUSTER_WORLD_SIZE"] = "1"
    w = numpy.zeros(1 << 20)
    state = muster.TrainingState(w=w)
    if change == "restored":  # a restore would fill it, and finds it moved before
        with muster.Node(state=state, save_every=2) as node:
            for _ in range(3):
                node.step()
        w.resize(4, refcheck=False)
        tries(lambda: muster.Node(state=state))
    with muster.Node(state=state, save_every=2, save_behind=change == "behind") as node:
        if change == "resized":
            w.resize(4, refcheck=False)
        else:
            w.shape = (1 << 10, 1 << 10)
        for _ in range(5):
            tries(node.step)


kind, _, detail = what.partition("-")
again = {"signal": by_signal, "thread": by_thread}.get(detail, detail)
try:
    globals()[f"of_{kind}"](again)
except (muster.Error, KeyboardInterrupt) as error:
    print(f"ended by {type(error).__name__}: {error}")
print("refused:", refused)
sys.exit(3 if refused else 4)
