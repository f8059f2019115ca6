"""What cannot be is an exception of muster's own, which says what, to what, and what next. The
interpreter lives on.
"""

import importlib
import os
import pathlib
import pickle
import re
import socket
import subprocess
import sys
import types
import warnings

import numpy
import pytest

import muster
from muster import _framework, _library


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


ADAPTERS = [
    ("torch", "torch", "torch", "2.3.1"),
    ("dcp", "torch", "torch", "2.3.1+cpu"),
    ("accelerate", "accelerate", "accelerate", "0.34.2"),
    ("transformers", "transformers", "transformers", "5.3.9"),
    ("lightning", "lightning", "lightning", "2.3.3"),
    ("jax", "jax", "jax", "0.8.2"),
    ("orbax", "orbax.checkpoint", "orbax-checkpoint", "0.11.19"),
    ("keras", "keras", "keras", "3.4.1"),
]


def of_version(monkeypatch, module, version):
    """A framework of this version, with nothing in it but its name."""
    names = module.split(".")
    for end in range(1, len(names) + 1):
        made = types.ModuleType(".".join(names[:end]))
        made.__version__, made.__path__ = version, []
        monkeypatch.setitem(sys.modules, made.__name__, made)
        if end > 1:
            setattr(sys.modules[".".join(names[: end - 1])], names[end - 1], made)


@pytest.mark.parametrize(("adapter", "module", "package", "version"), ADAPTERS)
def test_a_framework_that_is_too_old_is_named_with_what_is_needed(
    monkeypatch, adapter, module, package, version
):
    of_version(monkeypatch, "torch", "2.15.0")
    of_version(monkeypatch, module, version)
    monkeypatch.delitem(sys.modules, f"muster.{adapter}", raising=False)
    with pytest.raises(muster.VersionError) as caught:
        importlib.import_module(f"muster.{adapter}")
    tested, oldest = _framework.TESTED[package]
    assert str(caught.value) == (
        f"muster.{adapter} cannot use {package} {version}: it needs {oldest} or later, and was "
        f"tested with {tested} (MUSTER_E_VERSION: pip install '{package}=={tested}.*')"
    )
    assert isinstance(caught.value, ImportError)


def test_each_module_for_a_framework_is_in_the_test_above():
    folder = pathlib.Path(muster.__file__).parent
    asks = re.compile(r"^_framework\.(check|require)_version\(", re.M)
    asking = {path.stem for path in folder.glob("*.py") if asks.search(path.read_text())}
    assert asking == {adapter for adapter, *_ in ADAPTERS}


@pytest.mark.parametrize(
    ("version", "too_old", "tested"),
    [
        ("0.11.19", True, False),
        ("0.11.20", False, False),
        ("0.12.0rc1", False, True),
        ("0.12.8+local.1", False, True),
        ("0.9", True, False),
        ("1.0.0", False, False),
    ],
)
def test_versions_are_compared_as_numbers(version, too_old, tested):
    assert _framework.is_too_old("orbax-checkpoint", version) == too_old
    assert _framework.is_tested("orbax-checkpoint", version) == tested


def test_a_version_that_nobody_tested_is_named_with_the_one_that_was():
    told = "muster.x was tested with jax 0.10, and this is jax 9.9; preempt and resume a short run"
    with pytest.warns(RuntimeWarning, match=told):
        _framework.check_version("muster.x", "jax", "9.9")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _framework.check_version("muster.x", "jax", "0.10.2")


def test_a_library_older_than_the_package_is_named():
    """As a distribution may have it, whose library is a package of its own."""
    with pytest.raises(muster.VersionError) as caught:
        _library.check("0.10.0", "0.9.1")
    assert str(caught.value) == (
        "this package is of muster 0.10.0, and its library libmuster is 0.9.1, which is older "
        "(MUSTER_E_VERSION: install libmuster 0.10.0 or later)"
    )
    _library.check("0.9.1", "0.9.1")
    _library.check("0.9.1", "0.10.0")


def test_a_library_that_lacks_a_name_is_told_as_such_and_crashes_nothing(tmp_path):
    folder = pathlib.Path(muster.__file__).parent
    (tmp_path / "muster").mkdir()
    for path in folder.glob("*.py"):
        (tmp_path / "muster" / path.name).symlink_to(path.resolve())
    (tmp_path / "muster/_native.py").write_text("raise ImportError('undefined symbol: muster_x')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "import muster"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        "ImportError: muster's module muster._native does not load: undefined symbol: muster_x. "
        "Its library libmuster is older than this package, or the package is for another Python; "
        "install both from one release of muster"
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda state: state.add_bytes("b", b"abc"), "'b' is a bytes that cannot be restored"),
        (lambda state: state.add_bytes("b", 5), "state 'b' is a int that cannot be restored"),
        (lambda state: state.add(5, numpy.zeros(1)), "the name of a state is 5; give it as text"),
        (lambda state: state.add("w", [1, 2]), "state 'w' is a list; give an array or CPU tensor"),
        (lambda state: state.add("w", numpy.zeros(1, "M8[s]")), "ndarray with dtype datetime64"),
        (
            lambda state: state.add_split("p", numpy.zeros(2), 4, 0, 0),
            "whole_shape of state 'p' is 4; give a tuple",
        ),
        (lambda state: muster.split_range("x", 0, 1), "length is 'x'; give a whole number"),
    ],
)
def test_what_no_state_can_hold_is_refused_by_name(call, says):
    with pytest.raises(muster.ArgumentTypeError, match=says):
        call(muster.TrainingState())


def test_a_layout_in_which_ranks_get_another_s_state_is_refused():
    with pytest.raises(muster.ArgumentError, match="layout is 'replicated', with which every rank"):
        _framework.own_parts({"layout": "replicated"})


def test_A5_what_is_a_rank_s_own_is_refused_by_name_where_ranks_get_another_s_state(alone):
    state = muster.TrainingState(w=numpy.zeros(3))
    state.add("random", numpy.zeros(2), own=True)
    for opens in (muster.Node, muster.Manager):
        with pytest.raises(muster.ArgumentError, match="\"random\" is each rank's own, and layout"):
            opens(state=state)
    state.remove("random")
    state.add_bytes("position", bytearray(8), own=True)
    with pytest.raises(muster.ArgumentError, match="\"position\" is each rank's own"):
        muster.Node(state=state)
    muster.Node(state=state, layout="sharded").close()


def test_an_array_on_a_device_that_is_not_here_is_refused_by_name():
    class Elsewhere:
        dtype = "float32"
        shape = (3,)
        device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:7"})()

        def data_ptr(self):
            raise AssertionError("its memory is not ours to read")

        def is_contiguous(self):
            return True

    told = "state 'w' is on cuda:7, where muster reads no memory; give a CPU tensor"
    with pytest.raises(muster.ArgumentError, match=told):
        muster.TrainingState(w=Elsewhere())


@pytest.mark.parametrize(
    "raised",
    [
        muster.Preempted(42, "away"),
        muster.PeerError(8, "rank 3 is gone", 3, 9, 70),
        muster.ArgumentTypeError(2, "rank is 'x'"),
        muster.NotFoundError(24, "no tensor 'v'"),
        muster.MissingFileError(7, "step 5 has no file 'rank.pt'"),
        muster.VersionError(5, "torch 2.3", advice="pip install torch"),
    ],
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
        with pytest.raises(muster.ArgumentError, match=r"muster.Node is closed; open another"):
            call()


@pytest.mark.parametrize(
    "kind, options, says",
    [
        (TypeError, {"rank": "0"}, "rank is '0'; give a whole number"),
        (TypeError, {"world_size": 2.5}, "world_size is 2.5; give"),
        (ValueError, {"rank": 1 << 40}, "rank is 1099511627776; give a number below"),
        (TypeError, {"grace": "soon"}, "grace is 'soon'; give seconds"),
        (ValueError, {"grace": -1}, "grace is -1; give seconds"),
        (TypeError, {"job": 5}, "job is 5; give it as text"),
        (TypeError, {"directory": 5}, "directory is 5; give it as text"),
        (TypeError, {"signals": ["TERM"]}, "signals is 'TERM'"),
        (TypeError, {"state": {"w": 1}}, r"state is a dict; give muster.TrainingState\("),
        (ValueError, {"layout": "scattered"}, "layout is 'scattered'; give one of"),
    ],
)
def test_a_wrong_argument_is_an_error_of_muster_s_and_of_python_s(kind, options, says):
    with pytest.raises(muster.ArgumentError, match=says) as caught:
        muster.Node(**options)
    assert isinstance(caught.value, kind) and isinstance(caught.value, ValueError)
    assert caught.value.name == "MUSTER_E_ARGUMENT" and caught.value.advice


def test_what_the_library_finds_wrong_is_of_the_same_class():
    with pytest.raises(muster.ArgumentError, match="rank without world_size"):
        muster.Node(state=muster.TrainingState(), rank=0)
    with pytest.raises(ValueError, match="longer than|255"):
        muster.TrainingState().add("x" * 300, numpy.zeros(1))
    with pytest.raises(KeyError):
        muster.TrainingState().remove("nothing")
