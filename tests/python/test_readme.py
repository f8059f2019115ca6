"""The programs of the READMEs run as they are printed."""

import re

import pytest
from conftest import HERE

import muster

SOURCE = HERE.parent.parent


@pytest.mark.parametrize("page", ["README.md", "client/python/README.md"])
def test_the_first_python_program_of_a_page_runs(world, tmp_path, page):
    program = re.search(r"```python\n(.*?)```", (SOURCE / page).read_text(), re.DOTALL).group(1)
    path = tmp_path / "program.py"
    path.write_text(program + "print(node.is_open, float(state['w'][0]))\n")
    launch = world.run(2, path)
    launch.finish()
    assert launch.log(0).startswith("False 2.9999")


OF_FRAMEWORKS = {"StatefulDataLoader", "DistributedSampler", "BackupAndRestore"}


def test_its_package_page_names_only_what_there_is():
    text = (SOURCE / "client/python/README.md").read_text()
    for name in re.findall(r"`([A-Z]\w+)`", text):
        assert hasattr(muster, name) or name in OF_FRAMEWORKS, name
