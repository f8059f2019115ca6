"""A10: a package and a library of two versions, each built from its own headers.

The old package is that of the commit which wrote the baseline of install.abi. It is linked with
today's library, as of a distribution that updates the library alone. A version that is yet to come
is today's with longer structures: its package meets today's library, and its library today's package.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from conftest import BUILD, World, digests

from muster._rows import KINDS

SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
BASELINE = "tests/install/abi/libmuster.abi.xz"


def command(*words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(source, into, folder=BUILD / "client"):
    """The package of a source tree, linked with the shared libraries of a folder."""
    headers = into / "include/muster"
    shutil.copytree(source / "client/include/muster", headers)
    for name in ("status.h", "status.def"):
        shutil.copy(source / "schema" / name, headers)
    shutil.copytree(source / "client/python/muster", into / "muster")
    native = into / "native.c"
    command(sys.executable, source / "client/python/build_native.py", "cc", native, headers.parent)
    libraries = [f"-l{name}" for name in ("muster", "muster-query")]
    command(
        *("cc", "-shared", "-fPIC", "-DPy_LIMITED_API=0x030a0000", f"-I{headers.parent}"),
        *(f"-I{sysconfig.get_path('include')}", native, "-o", into / "muster/_native.abi3.so"),
        *(f"-L{folder}", *libraries, f"-Wl,-rpath,{folder}"),
    )
    return into


def imports(package):
    """What `import muster` says of that package."""
    return subprocess.run(
        [sys.executable, "-c", "import muster; print(muster._library.LIBRARY)"],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and so there is no older version to build")
    git = ["git", "-C", str(SOURCE)]
    found = subprocess.run(
        [*git, "log", "-1", "--format=%H", "--", BASELINE], capture_output=True, text=True
    )
    if found.returncode != 0 or not found.stdout:
        pytest.skip("there is no history here, and so no older version to build")
    tree = tmp_path_factory.mktemp("old")
    folders = ("client/include", "client/python", "schema", "tests/python/programs")
    archive = subprocess.run(
        [*git, "archive", found.stdout.strip(), *folders], capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    build(tree, tree / "package")
    return tree


# They grow at their ends, and say how long they are. test_binding.py sees that none is missing.
GROWING = {
    "node": ("save_context", "restore_context", "node_options", "announced", "event", "identity"),
    "manager": ("manager_options", "restored", "save_request", "checkpoint_info"),
    "policy": ("policies",),
    "training": ("training_state_options",),
    "worker": ("worker_options",),
    "coordinator": ("coordinator_options", "call"),
    "checkpoint": ("read_options",),
}
ROWS = {"client": tuple(f"{kind}_row" for kind in KINDS)}  # muster_rows_array is told their size


def grow(tree, structures):
    """Each of these structures gets members that no other version knows."""
    for header, names in structures.items():
        file = tree / f"client/include/muster/{header}.h"
        text = file.read_text()
        for name in names:
            text, count = re.subn(
                rf"^(struct muster_{name} {{\n(?:(?:    .*)?\n)+?)}};",
                r"\1    int64_t newer[4];\n};",
                text,
                flags=re.M,
            )
            assert count == 1, name
        file.write_text(text)


def works(world, package):
    """Each call, and each structure that the library fills, is as the package knows it."""
    own = {"MUSTER_JOB": "structs", "MUSTER_CHECKPOINT_DIR": str(world.directory / "structs")}
    for program, env in (("every_call.py", {}), ("structs.py", own)):
        process = world.python(program, env={"PYTHONPATH": str(package), **env})
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0, text


def changed(tmp_path, file, pattern, replacement):
    """Today's source with one change in one header, as of a newer version."""
    tree = tmp_path / "newer"
    for folder in ("client/include", "client/python", "schema"):
        shutil.copytree(SOURCE / folder, tree / folder)
    text, count = re.subn(pattern, replacement, (tree / file).read_text(), flags=re.M)
    assert count == 1
    (tree / file).write_text(text)
    return build(tree, tmp_path / "package")


def test_A10_each_call_of_an_old_package_works_with_a_newer_library(world, old):
    env = {"PYTHONPATH": str(old / "package")}
    process = world.python(old / "tests/python/programs/every_call.py", env=env)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0, text


def test_A10_an_old_package_is_preempted_and_resumes_with_a_newer_library(
    world, old, tmp_path_factory
):
    uninterrupted = World(tmp_path_factory.mktemp("uninterrupted"))
    found = []
    for each, package in ((uninterrupted, BUILD / "client/python"), (world, old / "package")):
        output = each.directory / "digests"
        launch = each.run(
            2,
            old / "tests/python/programs/train_numpy.py",
            100,
            0.05 if each is world else 0,
            output,
            env={"PYTHONPATH": str(package)},
        )
        if each is world:
            each.await_step(5, ranks=2)
            each.muster("notify", "--job", "job", "0")
        launch.finish()
        found.append(digests(output))
    uninterrupted.end()
    assert found[0] == found[1] and len(found[0]) == 2
    assert {row.exit_code for row in world.client.nodes("job", 1)} == {42}


def test_A10_a_library_older_than_the_package_is_named(tmp_path):
    package = changed(tmp_path, "schema/status.h", r'^#define MUSTER_VERSION ".*"', '#define MUSTER_VERSION "99.1.0"')
    done = imports(package)
    assert done.returncode == 1 and re.search(
        r"VersionError: this package is of muster 99\.1\.0, and its library libmuster is "
        r"\d+\.\d+\.\d+, which is older \(MUSTER_E_VERSION: install libmuster 99\.1\.0 or later\)",
        done.stderr.splitlines()[-1],
    ), done.stderr


def test_A10_a_library_that_lacks_a_call_of_the_package_is_named(tmp_path):
    package = changed(
        tmp_path,
        "client/include/muster/node.h",
        r"^(MUSTER_API int muster_node_save_fail)",
        r"MUSTER_API int muster_node_not_yet(void);\n\1",
    )
    done = imports(package)
    last = done.stderr.splitlines()[-1]
    library = (BUILD / "client/libmuster.so").resolve()
    assert done.returncode == 1 and "muster._exceptions.VersionError: " in last, done.stderr
    assert "undefined symbol: muster_node_not_yet" in last
    assert f" with the library {library.parent}/libmuster.so." in last and " of muster " in last


def test_A10_a_package_whose_structures_are_longer_than_its_librarys_works(world, tmp_path):
    tree = tmp_path / "newer"
    for folder in ("client/include", "client/python", "schema"):
        shutil.copytree(SOURCE / folder, tree / folder)
    grow(tree, GROWING)  # a package's classes of rows are its headers', so these are the library's
    package = build(tree, tmp_path / "package")
    works(world, package)


def test_A10_a_package_whose_structures_are_shorter_than_its_librarys_works(world, tmp_path):
    tree = tmp_path / "newer"
    ignored = shutil.ignore_patterns("build", ".git", "tests")
    shutil.copytree(SOURCE, tree, ignore=ignored)
    grow(tree, {**GROWING, **ROWS})
    events = tree / "client/node/node_events.c"  # asserts that today's ends with its text
    text, count = re.subn(r"^_Static_assert\(.*?\);\n", "", events.read_text(), flags=re.M | re.S)
    assert count == 1
    events.write_text(text)
    made = tmp_path / "build"
    cmake = ("cmake", "-G", "Ninja", "-S", tree, "-B", made, "-DBUILD_TESTING=OFF")
    command(*cmake, "-DCMAKE_BUILD_TYPE=Debug", "-DMUSTER_WERROR=OFF")
    command("ninja", "-C", made, "libmuster", "libmuster_query")
    package = build(SOURCE, tmp_path / "package", made / "client")
    works(world, package)
