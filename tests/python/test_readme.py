"""The programs of the READMEs run as they are printed."""

import ast
import builtins
import json
import re
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy
import pytest
import test_slow_readme
from conftest import HERE, page_blocks, without_muster
from test_node import line_with

import muster

SOURCE = HERE.parent.parent


@pytest.mark.parametrize("page", ["README.md", "client/python/README.md"])
def test_the_first_python_program_of_a_page_runs(world, tmp_path, page):
    program = re.search(r"```python\n(.*?)```", (SOURCE / page).read_text(), re.DOTALL).group(1)
    path = tmp_path / "program.py"
    program = re.sub(r"time\.sleep\(0\.005\)", "pass", program)  # a minute of it
    path.write_text(program + "print(node.is_open, float(state['w'][0]))\n")
    launch = world.run(2, path)
    launch.finish()
    assert launch.log(0).startswith("False 2.9999")


OF_FRAMEWORKS = {"StatefulDataLoader", "DataLoader", "DistributedSampler", "BackupAndRestore"}


def test_its_package_page_names_only_what_there_is():
    text = (SOURCE / "client/python/README.md").read_text()
    for name in re.findall(r"`([A-Z]\w+)`", text):
        assert any(hasattr(place, name) for place in (muster, builtins)) or name in OF_FRAMEWORKS, name


LINES = {
    "accelerate_loop": 5,  # one of them: its epochs begin where it goes on
    "fsdp_dcp": 4,
    "hf": 2,
    "jax_orbax": 1,
    "keras_fit": 0,
    "lightning_ddp": 2,
    "numpy_sgd": 3,
    "ray_train": 6,  # two of them: its workers get MUSTER_BROKER and the like
    "torch_ddp": 4,
}


def unbound(text):
    """The names that a program reads and nothing in it makes."""
    tree = ast.walk(ast.parse(text))
    made, read = set(dir(builtins)) | {"__name__"}, set()
    for node in tree:
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            made.add(node.name)
        elif isinstance(node, ast.alias):
            made.add((node.asname or node.name).split(".")[0])
    return read - made


def test_A2_so_many_lines_of_an_example_are_muster_s():
    folder = SOURCE / "client/python/examples"
    assert {path.stem for path in folder.glob("*.py")} == set(LINES)
    for name, most in LINES.items():
        text, count = without_muster(folder / f"{name}.py")
        compile(text, name, "exec")
        body = text.split('"""')[2]
        assert "muster" not in re.sub(r"#.*", "", body), name
        assert not unbound(text), f"{name} needs these of muster's lines: {unbound(text)}"
        assert count <= most, f"{name}: {count} lines"


def test_A2_the_example_of_NumPy_ends_with_the_bits_of_what_it_was_before_muster(world, tmp_path):
    example = SOURCE / "client/python/examples/numpy_sgd.py"
    (tmp_path / "plain.py").write_text(without_muster(example)[0])
    told = []
    for program in (tmp_path / "plain.py", example):
        launch = world.run(2, program, 100, 0)
        launch.finish()
        told.append(launch.log(0) + launch.log(1))
    assert told[0].count("100 steps, weights ") == 2 and told[0] == told[1]


def test_the_callables_of_the_page_save_and_restore(alone):
    text = (SOURCE / "client/python/README.md").read_text()
    block = re.search(r"^  ```python\n(  def save.*?)  ```", text, re.DOTALL | re.M).group(1)
    block = textwrap.dedent(block).replace("restore=restore)", "restore=restore, save_every=1)")
    for begins, restored in ((1.0, 1.0), (0.0, 1.0)):
        names = {"numpy": numpy, "muster": muster, "w": numpy.full(3, begins)}
        exec(block, names)
        assert set(names["w"]) == {restored}
        for _ in range(2):
            names["node"].step()
        names["node"].close()


OWN_SAVES = """
import contextlib, os, time
import numpy, muster

w = numpy.zeros(4)

def train(step):
    w.__iadd__(1)
    time.sleep(0.03)

def save(path, rank):
    if path.endswith("/100") and rank == 1:
        raise OSError("No space left")
    os.makedirs(path, exist_ok=True)
    numpy.savez(f"{path}/{rank}", w=w)

def load(path, rank):
    w[:] = numpy.load(f"{path}/{rank}.npz")["w"]

"""


def test_the_loop_of_the_page_that_saves_by_itself_is_preempted_and_resumes(world, tmp_path):
    (loop,) = page_blocks("Your own saves")
    loop = loop.replace("10_000", "400").replace("(500)", "(100)").replace("/shared", str(tmp_path))
    (tmp_path / "train.py").write_text(OWN_SAVES + loop + "print('ended', set(w), restored)\n")
    launch = world.run(2, tmp_path / "train.py")
    world.await_step(110, ranks=2)
    assert {row.state for row in world.client.rounds("job")} >= {"committed", "aborted"}
    world.muster("notify", "--job", "job", "1")
    launch.finish()
    assert "(2 launches, 1 preemption, 0 failures)" in launch.stderr
    assert all("ended {np.float64(400.0)} Restored(" in launch.log(rank) for rank in range(2))
    rows = world.client.checkpoints("job")
    assert [row.step - 1 for row in rows if row.state == "failed"] == [100]
    assert json.loads(rows[0].custom)["path"] == f"{tmp_path}/mine/0"


HERE_RUN = {
    "First program",
    "Your own saves",
    "Test your own program",
    "Read a checkpoint without its job",
    "Tasks",
}


def test_every_section_with_a_program_is_run_here_or_with_its_framework():
    with_framework = {*test_slow_readme.PRELUDES, "PyTorch"}  # which test_slow_torch runs
    assert set(page_blocks(None)) == HERE_RUN | with_framework


def test_the_test_of_the_page_passes_for_the_program_of_the_page(tmp_path):
    (program,) = page_blocks("First program")
    (test,) = page_blocks("Test your own program")
    (tmp_path / "train.py").write_text(program.replace("12000", "1000"))
    (tmp_path / "test_mine.py").write_text(test)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


SAVES = """
import os
import numpy, muster

state = muster.TrainingState(w=numpy.full(10, 3.0))
state.add("rng", numpy.array(int(os.environ["MUSTER_RANK"])), own=True)
with muster.Manager(state=state, layout="sharded") as manager:
    manager.restore()
    manager.save(1200, force=True, metrics={"loss": 0.5})
"""


def test_the_readers_of_the_page_read_what_a_job_saved(world, monkeypatch):
    for name in ("MUSTER_BROKER", "MUSTER_CHECKPOINT_DIR"):
        monkeypatch.setenv(name, world.env[name])
    monkeypatch.chdir(world.directory)
    (world.directory / "saves.py").write_text(SAVES)
    world.run(3, world.directory / "saves.py", options=("--job", "mine")).finish()
    reads, follows = page_blocks("Read a checkpoint without its job")
    held = {"w": numpy.zeros(10)}
    names = {
        "muster": muster,
        "model": SimpleNamespace(state_dict=lambda: held),
        "path": "checkpoints/1200",
    }
    lines = reads.replace("checkpoint.step, list", "told = checkpoint.step, list")
    lines = lines.replace("muster.read(path, rank=2)", "own = muster.read(path, rank=2)")
    exec(lines, names)
    step, tensors, metrics = names["told"]
    assert (step, set(tensors), metrics) == (1201, {"w", "rng"}, {"loss": 0.5})
    assert (held["w"] == 3).all() and names["own"] == 2
    found = []
    names["evaluate"] = found.append
    exec(follows.replace("timeout=3600", "timeout=1"), names)
    assert [checkpoint.step for checkpoint in found] == [1201]


SERVES = """
import json, os, signal
import muster
model = lambda args: len(args)
"""


def test_the_worker_and_the_coordinator_of_the_page_score_names(world, tmp_path):
    serves, schedules = page_blocks("Tasks")
    worker, coordinator = tmp_path / "worker.py", tmp_path / "coordinator.py"
    worker.write_text(SERVES + serves.replace("worker.serve()", "print('serves'); worker.serve()"))
    coordinator.write_text(SERVES + "names = ['a', 'bb']\n" + schedules + "print(scores)\n")
    serving = world.python(worker)
    line_with(serving, "serves")
    text, _ = world.python(coordinator).communicate(timeout=60)
    assert text == "[1, 2]\n", text
    serving.send_signal(signal.SIGTERM)
    text, _ = serving.communicate(timeout=60)
    assert serving.returncode == 0 and text == "", text
