"""What cannot be is an exception of muster's own, which says what, to what, and what next. The
interpreter lives on.
"""

import os
import pickle
import socket
import subprocess
import sys

import numpy
import pytest

import muster
from muster import _framework


def saved(alone, **arrays):
    """A checkpoint of these arrays."""
    with muster.Node(state=muster.TrainingState(arrays), save_every=1) as node:
        node.step()
        node.step()
    assert alone.client.checkpoints("job")


@pytest.mark.parametrize(
    "arrays",
    [{"w": numpy.zeros((4, 2))}, {"w": numpy.zeros(8, "float32")}, {"v": numpy.zeros(8)}],
)
def test_a_state_that_changed_its_shape_its_type_or_its_name_is_named(alone, arrays):
    saved(alone, w=numpy.zeros(8))
    with pytest.raises(muster.RestoreError) as caught:
        muster.Node(state=muster.TrainingState(arrays))
    assert next(iter(arrays)) in caught.value.text and caught.value.advice


def test_a_dead_broker_is_named_and_not_asked_by_the_import():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    env = {
        **os.environ,
        "MUSTER_BROKER": f"tcp://127.0.0.1:{port}",
        "MUSTER_JOB": "job",
        "MUSTER_RANK": "0",
        "MUSTER_WORLD_SIZE": "1",
        "MUSTER_CHECKPOINT_DIR": "/tmp/never-made",
    }
    program = (
        "import muster\nprint('imported', flush=True)\n"
        "try:\n    muster.Node(state=muster.TrainingState(), connect_timeout=0.2)\n"
        "except muster.BrokerError as error:\n    print(error.name, error)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("imported\nMUSTER_E_BROKER ") and str(port) in done.stdout


def test_a_version_that_nobody_tested_is_named_with_the_one_that_was():
    with pytest.warns(RuntimeWarning, match="muster.x was tested with fw 1.2, and this is fw 9.9"):
        _framework.check_version("muster.x", "fw", "9.9", "1.2")


def test_a_layout_in_which_ranks_get_another_s_state_is_refused():
    with pytest.raises(ValueError, match="layout is 'replicated', with which every rank would get"):
        _framework.own_parts({"layout": "replicated"})


def test_an_array_on_a_device_that_is_not_here_is_refused_by_name():
    class Elsewhere:
        dtype = "float32"
        shape = (3,)
        device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:7"})()

        def data_ptr(self):
            raise AssertionError("its memory is not ours to read")

        def is_contiguous(self):
            return True

    with pytest.raises(ValueError, match="state 'w' is on cuda:7"):
        muster.TrainingState(w=Elsewhere())


@pytest.mark.parametrize(
    "raised", [muster.Preempted(42, "away"), muster.PeerError(8, "rank 3 is gone", 3, 9, 70)]
)
def test_an_exception_goes_from_a_process_to_another_whole(raised):
    """Ray and multiprocessing pickle what a worker raised."""
    again = pickle.loads(pickle.dumps(raised))
    assert type(again) is type(raised) and again.__dict__ == raised.__dict__
    assert str(again) == str(raised) and getattr(again, "code", 0) == raised.code


def test_a_closed_node_says_so(alone):
    node = muster.Node(state=muster.TrainingState(w=numpy.zeros(1)))
    node.close()
    for call in (node.step, node.restore, lambda: node.fail("late"), lambda: node.rank):
        with pytest.raises(ValueError, match=r"this muster.Node is closed; open another"):
            call()
