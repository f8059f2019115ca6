"""What cannot be is an exception of muster's own, which says what, to what, and what next. The
interpreter lives on.
"""

import concurrent.futures
import importlib
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import types
import warnings

import numpy
import pytest

import muster
from muster import _errors, _framework, _library
from muster._native import ffi, lib


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


OPENS = """
import muster
print("imported")
try:
    {}
except muster.BrokerError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "call",
    [
        "muster.Node(state=muster.TrainingState(), connect_timeout=0.2)",
        "muster.Manager(state=muster.TrainingState(), connect_timeout=0.2).restore()",
        "muster.Coordinator(connect_timeout=0.2)",
        "muster.Worker({}, connect_timeout=0.2).serve()",
        "muster.Client(timeout=0.2).jobs()",
        "muster.Reader(job='job', timeout=0.2).latest_step()",
    ],
)
def test_a_dead_broker_is_named_with_what_to_do_and_not_asked_by_the_import(call):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
    env = {
        **os.environ,
        "MUSTER_BROKER": address,
        "MUSTER_JOB": "job",
        "MUSTER_RANK": "0",
        "MUSTER_WORLD_SIZE": "1",
        "MUSTER_CHECKPOINT_DIR": "/tmp/never-made",
    }
    done = subprocess.run(
        [sys.executable, "-c", OPENS.format(call)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imported, told = done.stdout.splitlines()
    assert imported == "imported"
    what, to_what, next_ = "no broker answered", address, "start one with `musterd`, "
    assert told.startswith(f"{what} at {to_what} within ") and next_ in told, told
    assert "correct the address" in told and "(MUSTER_E_BROKER" in told, told
    named = "argument address" if "Client" in call else "option broker"
    assert named in told and "MUSTER_BROKER" in told and "--" not in told, told


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (None, "(argument address, MUSTER_BROKER) or a database (argument address, MUSTER_DB)"),
        ("ipc://nowhere.sock", "correct the address (argument address, MUSTER_BROKER), or read its"),
        ("tcp://127.0.0.1:9,tcp://127.0.0.1:10", "addresses (argument address, MUSTER_BROKER)"),
        ("postgresql://%zz/x", "argument address takes postgresql://HOST/DATABASE"),
    ],
)
def test_a_wrong_place_is_named_by_the_argument_and_not_by_an_option_of_the_tool(
    monkeypatch, tmp_path, place, named
):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(muster.Error) as caught:
        muster.Client(place, timeout=0.2).jobs()
    assert named in str(caught.value) and "--" not in str(caught.value)


def test_an_order_to_a_database_asks_for_the_address(world):
    with pytest.raises(muster.Error) as caught:
        muster.Client(world.directory / "muster.db").save_now("job")
    assert "(argument address)" in str(caught.value) and "--" not in str(caught.value)


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
    for other in ("torch", "jax", "numpy"):  # none can be imported: the version is looked at first
        monkeypatch.setitem(sys.modules, other, None)
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


IMPORTS = """
try:
    import muster
except ImportError as error:
    assert type(error).__name__ == "VersionError" and error.exit_code == 93
    print(error)
"""


def imported(folder, module):
    """What `import muster` says, of the package with another module muster._native."""
    (folder / "muster").mkdir()
    for path in pathlib.Path(muster.__file__).parent.glob("*.py"):
        (folder / "muster" / path.name).symlink_to(path.resolve())
    if module is not None:
        module.rename(folder / "muster/_native.abi3.so")
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip()


def linked(folder, name, text, *libraries):
    """A shared library of this C text."""
    (folder / "text.c").write_text(text)
    words = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, folder / "text.c"]
    subprocess.run([*words, *libraries, f"-Wl,-rpath,{folder}"], check=True)
    return folder / name


VERSION = 'const char *muster_version(void) { return "0.1.9"; }'


@pytest.mark.parametrize(
    ("older", "told"), [(VERSION, " of muster 0.1.9"), ("", ", which is older than muster 0.2")]
)
@pytest.mark.parametrize("bound", ["-Wl,-z,lazy", "-Wl,-z,now"])
def test_a_library_that_lacks_a_name_is_named_with_its_version(tmp_path, monkeypatch, older, told, bound):
    """As a distribution may have it, whose library is a package of its own."""
    call = "void muster_not_yet(void);"
    newer = linked(tmp_path, "libmuster.so.9", call[:-1] + " {}")
    module = linked(tmp_path, "m.so", call + " void uses(void) { muster_not_yet(); }", newer, bound)
    linked(tmp_path, "libmuster.so.9", older)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    path = tmp_path / "muster/_native.abi3.so"
    assert imported(tmp_path, module) == (
        f"{path} does not load with the library {newer}{told}: {path}: undefined symbol: "
        "muster_not_yet (MUSTER_E_VERSION: install that library from the same release as this "
        "package)"
    )


def test_a_module_for_another_system_and_one_that_is_not_there_are_named(tmp_path):
    (tmp_path / "m.so").write_bytes(b"no library")
    for folder in ("other", "sources"):
        (tmp_path / folder).mkdir()
    told = imported(tmp_path / "other", tmp_path / "m.so")
    path = tmp_path / "other/muster/_native.abi3.so"
    assert told.startswith(f"{path} does not load: {path}: ") and told.endswith(
        "(MUSTER_E_VERSION: the package is for another system or Python; install one for this)"
    ), told
    assert imported(tmp_path / "sources", None) == (
        f"the folder {tmp_path}/sources/muster has no compiled module muster._native "
        "(MUSTER_E_VERSION: install the package; its sources do not run unbuilt)"
    )


def test_what_a_version_error_says_without_its_library_is_what_the_library_says():
    error = muster.VersionError(lib.MUSTER_E_VERSION, "")
    assert _library._STATUS == error.status
    assert error.name == ffi.string(lib.muster_status_name(error.status)).decode()
    assert error.exit_code == lib.muster_status_exit_code(error.status)


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


def forked(call):
    """What a call raises in a forked child, raised here."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a child that hangs is ended
        told = None
        try:
            call()
        except BaseException as raised:
            told = raised
        with open(writes, "wb") as pipe:
            pickle.dump(told, pipe)
        os._exit(0)
    os.close(writes)
    with open(reads, "rb") as pipe:
        told = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    raised = pickle.loads(told)
    if raised is not None:
        raise raised


def opened(what):
    state = muster.TrainingState(w=numpy.zeros(1))
    if what == "Manager":
        made = muster.Manager(state=state)
        made.restore()
        return made
    return {
        "Node": lambda: muster.Node(state=state),
        "Client": lambda: muster.Client(),
        "Reader": lambda: muster.Reader(job="job"),
        "Coordinator": lambda: muster.Coordinator(),
        "Worker": lambda: muster.Worker({}, index=0),
    }[what]()


FROM = {
    "Node": "forked from the node's",
    "Manager": "forked from the manager's",
    "Client": "muster.Client belongs to the parent of this forked process",
    "Reader": "forked from the manager's",
    "Coordinator": "forked from the coordinator's, .*; open one of another name here",
    "Worker": "forked from the worker's, which alone may use it",
}
HANDLE = "the handle belongs to the parent of this forked process"


@pytest.mark.parametrize(
    ("what", "call", "says"),
    [
        ("Node", lambda node: node.step(), None),
        ("Node", lambda node: node.wait_until_saved(60), None),
        ("Node", lambda node: node.fail("gone", suspect=True), None),
        ("Node", lambda node: node.fail("gone"), HANDLE),
        ("Node", lambda node: node.notify(), HANDLE),
        ("Node", lambda node: next(node.events(60)), "the queue is the parent's"),
        ("Node", lambda node: node.scope().__enter__(), None),
        ("Node", lambda node: node.close(), "Node.close: .* forked from the node's"),
        ("Manager", lambda manager: manager.save(0, force=True), None),
        ("Manager", lambda manager: manager.all_steps(), None),
        ("Manager", lambda manager: manager.wait_until_finished(60), None),
        ("Client", lambda client: client.jobs(), None),
        ("Client", lambda client: client.save_now("job"), None),
        ("Reader", lambda reader: reader.latest_step(), None),
        ("Reader", lambda reader: reader.next_checkpoint(60), None),
        ("Coordinator", lambda coordinator: coordinator.schedule("f"), None),
        ("Coordinator", lambda coordinator: coordinator.per_worker("f"), None),
        ("Coordinator", lambda coordinator: coordinator.join(60), None),
        ("Worker", lambda worker: worker.serve(), None),
    ],
)
def test_what_a_forked_process_asks_of_its_parents_object_is_refused(alone, what, call, says):
    with opened(what) as made:
        with pytest.raises(muster.ForkedError, match=says or FROM[what]) as caught:
            forked(lambda: call(made))
        assert caught.value.name == "MUSTER_E_FORKED"
        assert caught.value.advice == "open another node in the child, or do not call muster there"
        forked(made.close if what not in ("Node", "Manager") else lambda: None)  # it just ends


def test_a_process_that_is_forked_in_the_middle_of_a_call_is_refused_and_does_not_hang(alone):
    told = []

    def save(context):
        with pytest.raises(muster.ForkedError) as caught:
            forked(node.step)
        told.append(caught.value)

    with muster.Node(save=save, restore=print, save_every=1) as node:
        node.step()
        node.step()
    assert told[0].text == "this muster.Node belongs to the parent of this forked process"
    with muster.Coordinator() as coordinator, coordinator._lock:  # another thread may have it
        with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(muster.ForkedError):
            pool.submit(forked, lambda: coordinator.join(60)).result(60)


@pytest.mark.parametrize(
    "kind", [muster.ForkedError, muster.RestoreError, muster.ArgumentTypeError]
)
def test_an_exception_that_is_made_of_a_text_alone_has_its_status(kind):
    """As PyTorch makes what a worker of a DataLoader raised."""
    made = kind("Caught it in DataLoader worker process 0.")
    assert made.text == "Caught it in DataLoader worker process 0." and made.advice in str(made)
    assert kind is type(pickle.loads(pickle.dumps(made)))
    assert _errors._CLASSES[made.status] in kind.__mro__


def test_a_closed_node_says_so(alone):
    node = muster.Node(state=muster.TrainingState(w=numpy.zeros(1)))
    node.step()
    node.close()
    for call in (node.step, node.restore, lambda: node.fail("late"), lambda: node.position):
        with pytest.raises(muster.ArgumentError, match=r"muster.Node is closed; open another"):
            call()


def test_a_closed_node_still_tells_which_rank_it_was_and_how_far_it_came(alone):
    state = muster.TrainingState(w=numpy.zeros(1))
    with muster.Node(state=state, save_every=2) as node:
        for _ in range(3):
            node.step()
    told = (node.rank, node.world_size, node.generation, node.steps_done, node.resumed_step)
    assert told == (0, 1, 1, 3, 0)
    with muster.Manager(state=state) as manager:
        manager.restore()
    assert (manager.rank, manager.steps_done, manager.resumed_step) == (0, 2, 2)
    with muster.Manager(state=state) as never_joined:
        pass
    with pytest.raises(muster.ArgumentError, match="muster.Manager is closed; open another"):
        never_joined.rank


def test_a_value_that_does_not_fit_is_named_with_its_state():
    state = muster.TrainingState(w=numpy.zeros(3))
    with pytest.raises(muster.ArgumentError, match="state 'w' cannot take this value: could not"):
        state["w"] = numpy.zeros(4)


def test_errors_of_open_name_python_s_options(alone, monkeypatch):
    says = r"set option state, or save and restore \(of a Manager: save_fn and restore_fn\)"
    with pytest.raises(muster.Error, match=says):
        muster.Node()
    monkeypatch.delenv("MUSTER_CHECKPOINT_DIR")
    with pytest.raises(muster.Error, match="set option directory or MUSTER_CHECKPOINT_DIR"):
        muster.Node(state=muster.TrainingState(w=numpy.zeros(1)))


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
    with pytest.raises(muster.ArgumentError, match="longer than 255 bytes; give the entry another"):
        muster.TrainingState().add("x" * 300, numpy.zeros(1))
    with pytest.raises(muster.NotFoundError, match='no entry "nothing"; give the name of one'):
        muster.TrainingState().remove("nothing")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("muster_manager_save: step 3 is over", "Manager.save: step 3 is over"),
        ("muster_node_open: no broker", "Node: no broker"),
        ("muster_training_state_open: no path", "TrainingState: no path"),
        ("call muster_node_restore before the first step", "call Node.restore before the first step"),
        ("muster_node_not_yet: no", "muster_node_not_yet: no"),
        ("see muster_round 1", "see muster_round 1"),
    ],
)
def test_an_error_names_the_call_of_python(told, says):
    error = ffi.new("struct muster_error *", {"text": told.encode()})
    assert _errors.error_of(lib.MUSTER_E_ARGUMENT, error).text == says
