"""The programs of the READMEs run as they are printed."""

import builtins
import re
import textwrap

import numpy
import pytest
from conftest import HERE, without_muster

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


def test_A2_so_many_lines_of_an_example_are_muster_s():
    folder = SOURCE / "client/python/examples"
    assert {path.stem for path in folder.glob("*.py")} == set(LINES)
    for name, most in LINES.items():
        text, count = without_muster(folder / f"{name}.py")
        compile(text, name, "exec")
        body = text.split('"""')[2]
        assert "muster." not in re.sub(r"#.*", "", body), name
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
