"""The wheel: one for every Python from 3.10 on, and it serves an environment that has nothing else.
That of `./tools/dev wheel`, which is given to others, is shown by install/slow_wheel.sh.
"""
# needs: scikit_build_core

import os
import subprocess
import sys
import venv
import warnings
import zipfile

import pytest
from conftest import HERE

SOURCE = HERE.parent.parent


def test_the_wheel_is_abi3_holds_the_package_alone_and_installs(tmp_path):
    options = ["--no-deps", "--no-build-isolation", "-q"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "-w", tmp_path, SOURCE / "client/python"],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("libmuster-") and "-cp310-abi3-linux_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"muster", "libmuster"}
    assert "muster/py.typed" in names
    assert wheel.stat().st_size < 4_000_000
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel, "numpy"], check=True)
    program = "import muster; print(muster.__file__, muster.__version__, muster.Node)"
    text = subprocess.run(
        [python, "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path, env={}
    ).stdout
    assert str(tmp_path / "fresh") in text


def test_A1_the_examples_end_with_the_same_bits_in_a_bare_debian_that_has_the_wheel_alone():
    mine = ("MUSTER", "PYTHON")  # the wheel's own are meant
    env = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    script = SOURCE / "tests/install/slow_wheel.sh"
    done = subprocess.run(["bash", script], env=env, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("skipped: "):
            warnings.warn(line, stacklevel=1)  # such as a Python that is not here
    if done.returncode == 77:
        pytest.skip(done.stdout.rpartition("skipped: ")[2].strip())
    assert done.returncode == 0, done.stdout + done.stderr
    for example in ("numpy_sgd.py", "torch_ddp.py"):
        assert f"{example}: preempted, resumed, the same bits; " in done.stdout, done.stdout
