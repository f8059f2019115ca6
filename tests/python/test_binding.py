"""The binding: its declarations are the headers', each call is reachable, and no framework is
imported.
"""

import ast
import dataclasses
import inspect
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

import interrupted
import numpy
import pytest
from conftest import BUILD, HERE, PROGRAMS
from test_slow_versions import GROWING, ROWS

import muster
from muster import _framework
from muster._native import ffi, lib
from muster._rows import KINDS

SOURCE = HERE.parent.parent
INCLUDES = [str(SOURCE / "client/include"), str(BUILD / "include")]


def test_the_declarations_are_those_of_the_headers():
    sys.path.insert(0, str(SOURCE / "client/python"))
    import build_native

    built = (BUILD / "client/python/native.cdef").read_text()
    assert build_native.declarations("cc", INCLUDES) == built
    public = set()
    for header in [
        *pathlib.Path(INCLUDES[0], "muster").glob("*.h"),
        pathlib.Path(INCLUDES[1], "muster/status.h"),
    ]:
        for declaration in re.findall(r"^MUSTER_API [^;]*;", header.read_text(), re.M):
            public.add(re.search(r"(muster_\w+)\(", declaration).group(1))
    assert len(public) >= 120
    assert public <= set(dir(lib)), public - set(dir(lib))


# No call is told the size of these, so they never grow.
FIXED = {
    "error": "each call fills it; its text has the rest",
    "keep_policy": "programs keep it in arrays",
    "save_policy": "programs keep it in arrays",
    "metric": "programs keep it in arrays",
    "place": "programs keep it in arrays",
    "termination_config": "node_options has it as a member, and grows behind it",
}


def test_A10_each_public_structure_says_its_size_or_never_grows():
    """So test_slow_versions.py shows each one that grows in two sizes."""
    folders = [pathlib.Path(folder, "muster") for folder in INCLUDES]
    text = "".join(path.read_text() for each in folders for path in each.glob("*.h"))
    structures = dict(re.findall(r"^struct muster_(\w+) \{\n(.*?)^\};", text, re.M | re.S))
    sized = {name for name, body in structures.items() if " struct_size;" in body}
    for declaration in re.findall(r"^MUSTER_API [^;]*\bstruct_size\b[^;]*;", text, re.M):
        sized.update(re.findall(r"\bstruct muster_(\w+)", declaration))
    rows = set(re.findall(r"MUSTER_ROWS_AS\(rows, \w+, muster_(\w+)\)", text))
    sized.discard("error")
    assert sized == {name for names in GROWING.values() for name in names}
    assert rows == set(*ROWS.values())
    assert set(structures) - sized - rows == set(FIXED)


def test_each_kind_of_row_has_the_fields_of_its_structure():
    structures = {name for name in ffi.list_types()[1] if re.fullmatch(r"muster_\w+_row", name)}
    assert structures == {f"muster_{kind}_row" for kind in KINDS}
    with pytest.raises(AttributeError):
        KINDS["job"](**{field: None for field in KINDS["job"].__dataclass_fields__}).job = "frozen"


def test_type_checkers_see_the_fields_of_each_row():
    stub = ast.parse((SOURCE / "client/python/muster/_rows.pyi").read_text())
    stated = {
        each.name: {field.target.id: ast.unparse(field.annotation) for field in each.body}
        for each in stub.body
        if isinstance(each, ast.ClassDef) and each.name != "Row"
    }
    assert stated == {
        cls.__name__: {
            field.name: field.type.__name__ if isinstance(field.type, type) else str(field.type)
            for field in dataclasses.fields(cls)
            if field.name != "extra"
        }
        for cls in KINDS.values()
    }


def test_the_package_imports_no_framework():
    text = "import muster, sys; print({'numpy', 'torch', 'jax'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", text], text=True) == "set()\n"


def undocumented(path):
    """The public classes, functions, methods and properties of a module that say nothing. What a
    class takes over from a framework, as on_train_end, is documented there.
    """
    taken_over = {
        "keras.py": r"on_",
        "lightning.py": r"on_|setup$",
        "transformers.py": r"on_",
    }

    def of(node, owner):
        for each in node.body:
            kind = isinstance(each, ast.ClassDef), isinstance(each, ast.FunctionDef)
            if not any(kind) or each.name.startswith("_"):
                continue
            inherits = owner and re.match(taken_over.get(path.name, r"$"), each.name)
            if not ast.get_docstring(each) and not inherits:
                yield f"{path.name}: {owner}{each.name}"
            if kind[0]:
                yield from of(each, f"{owner}{each.name}.")

    return of(ast.parse(path.read_text()), "")


def test_each_public_name_of_the_modules_for_frameworks_has_a_docstring():
    folder = pathlib.Path(muster.__file__).parent
    public = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    assert len(public) >= 9
    for path in public:
        assert ast.get_docstring(ast.parse(path.read_text())), path
        assert not list(undocumented(path))


def public_names():
    """Of `muster` itself: each name, with the class that it belongs to."""
    for name in muster.__all__:
        each = getattr(muster, name)
        yield name, each, None
        for member, value in inspect.getmembers(each) if inspect.isclass(each) else ():
            ours = any(
                member in base.__dict__ and base.__module__.startswith("muster")
                for base in each.__mro__
            )
            if ours and not member.startswith("_") and (callable(value) or isinstance(value, property)):
                yield f"{name}.{member}", value, each


def test_each_public_name_has_a_docstring():
    names = list(public_names())
    assert len(names) > 200
    assert not [name for name, value, _ in names if not inspect.getdoc(value)]
    generated = [name for name, value, _ in names if re.match(name + r"\(", inspect.getdoc(value))]
    assert not generated, "these have what dataclass makes of their fields"


# What the package calls where a call of C may wait: see _checkpoints, _member, _node, _tasks, _client.
WAITS = re.compile(
    r"\b(_ask|_order|_call|_status|_wait|_apart|_step|_close_c|ended\.wait|events\.read"
    r"|super\(\)\.close|muster_\w+_open|muster_checkpoint_read)\("
)
# And in the modules for frameworks, which are read and not imported. `on_train_end` and its like
# are documented by the framework.
ADAPTER_WAITS = re.compile(
    r"\b(node|manager|_?elsewhere|self)\.(restore|save|should_save|close|ask|commit)\("
    r"|\b(_ask|_open|_join|Elsewhere|init_process_group|distributed\.initialize|preempt)\("
)


class Call(NamedTuple):
    """A public call. of: its class's docstring; that of `Node` itself is `Node(...)`."""

    name: str
    text: str
    of: str
    source: str
    floats: set[str]  # parameters


def calls_of_the_package():
    for name, value, owner in public_names():
        function = value.__init__ if inspect.isclass(value) else inspect.unwrap(value)
        if not inspect.isfunction(function):
            continue
        floats = {
            each.name
            for each in inspect.signature(function).parameters.values()
            if "float" in str(each.annotation)
        }
        try:
            source = inspect.getsource(function)
        except OSError:
            source = ""  # a dataclass made it
        of = "" if owner is None else inspect.getdoc(owner)
        yield Call(name, inspect.getdoc(value), of, source, floats)


def calls_of_adapters():
    for path in sorted(pathlib.Path(muster.__file__).parent.glob("[a-z]*.py")):
        source = path.read_text()

        def of(node, name, text, source=source):
            for each in node.body:
                if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                    yield from of(each, f"{name}.{each.name}", ast.get_docstring(each) or "")
                if not isinstance(each, ast.FunctionDef) or not re.match(
                    r"__init__$|(?!_|on_|setup$)", each.name
                ):
                    continue
                arguments = [*each.args.args, *each.args.kwonlyargs]
                yield Call(
                    name if each.name == "__init__" else f"{name}.{each.name}",
                    ast.get_docstring(each) or "",
                    text,
                    ast.get_source_segment(source, each),
                    {one.arg for one in arguments if "float" in ast.unparse(one.annotation or one)},
                )

        yield from of(ast.parse(source), path.stem, "")


def those_that_wait():
    """Of the package; of the modules for frameworks."""
    package = {call.name: call for call in calls_of_the_package() if WAITS.search(call.source)}
    found = {call.name: call for call in calls_of_adapters() if ADAPTER_WAITS.search(call.source)}
    return package, found


def test_each_call_that_can_wait_says_so_or_names_its_errors():
    package, adapters = those_that_wait()
    assert {"Node.step", "Manager.save", "Client.jobs", "Coordinator.join"} <= set(package)
    wanted = {"torch.Checkpointer.restore", "orbax.CheckpointManager.save", "jax.PreemptionSync"}
    assert wanted <= set(adapters)
    for call in (*package.values(), *adapters.values()):
        if call.name not in interrupted.NOT:
            told = call.text + call.of
            assert re.search(r"\b([Ww]aits?|[Bb]locks?|[Rr]aises?)\b", told), call.name


def test_A6_each_call_that_can_wait_has_a_test_that_breaks_it_off():
    """Of a module for a framework: or it waits in one of these, and nowhere else."""
    package, adapters = those_that_wait()
    named = set(interrupted.ADAPTERS_BY) | set(interrupted.ADAPTERS_NOT)
    assert set(adapters) == named, set(adapters) ^ named
    assert not set(interrupted.ADAPTERS_BY) & set(interrupted.ADAPTERS_NOT)
    known = set(interrupted.BY) | set(interrupted.NOT)
    assert set(package) <= known, set(package) - known
    public = {name for name, *_ in public_names()}
    assert known <= public and not set(interrupted.BY) & set(interrupted.NOT), known - public
    for program, word in (*interrupted.BY.values(), *interrupted.ADAPTERS_BY.values()):
        assert word in interrupted.WORDS[program], (program, word)


def test_each_time_that_a_call_takes_is_said_to_be_in_seconds():
    found = set()
    for call in (*calls_of_the_package(), *calls_of_adapters()):
        for name in call.floats:
            if re.search("timeout|left|grace|lease|wait", name):
                found.add(f"{call.name}({name})")
                assert "second" in call.text, f"{call.name}({name})"
    assert {"Node.fail(wait)", "Manager.pin(lease)", "Node(grace)", "Client(timeout)"} <= found


def test_the_types_are_strict(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)],
        cwd=SOURCE / "client/python",
        check=True,
    )


def test_every_public_call_is_reached(world):
    process = world.python("every_call.py")
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "missing: []" in text, text


@pytest.mark.parametrize(
    "array, says",
    [
        (numpy.zeros(4, "datetime64[s]"), "dtype datetime64.*; give an array"),
        (numpy.zeros((4, 4)).T[:2], "not C-contiguous.; give a C-cont"),
        (numpy.zeros(4, ">f8"), "big-endian; give it in native"),
        ("text", "is a str; give an array"),
        (numpy.frombuffer(b"12345678"), "read-only.*; give a C-contiguous, writable"),
    ],
)
def test_an_array_that_cannot_be_restored_in_place_is_refused_by_name(array, says):
    with pytest.raises(muster.ArgumentError, match="state 'weights'.*" + says):
        muster.TrainingState(weights=array)


def test_A10_the_module_has_its_library_in_it_and_shows_it_to_nobody():
    """So no other libmuster, of whatever age, ever reads or writes its structures."""
    module = str(BUILD / "client/python/muster/_native.abi3.so")
    needed = subprocess.check_output(["readelf", "--dynamic", module], text=True)
    assert "libmuster" not in needed
    names = subprocess.check_output(["nm", "-D", "--defined-only", module], text=True)
    assert {line.split()[-1] for line in names.splitlines()} == {"PyInit__native"}


@pytest.mark.parametrize("framework", ["no_such_framework", "muster_neither"])
def test_A12_a_file_whose_framework_is_not_there_is_skipped_by_name(tmp_path, framework):
    (tmp_path / "test_x.py").write_text(f"# needs: os\n# needs: {framework}\n")
    env = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", HERE / "run.sh", tmp_path / "test_x.py"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 77, done.stderr
    assert done.stdout.startswith(f"skipped: {framework} is not installed in build/python"), done


def test_wrong_options_are_named():
    state = muster.TrainingState()
    for options, says in [
        ({"layout": "scattered"}, "layout is 'scattered'; give one of 'replicated'"),
        ({"save": print}, "give save and restore together"),
        ({"join_timeout": -1}, "join_timeout is -1; give seconds from 0 on"),
        ({"signals": range(1, 10)}, "9 signals are given; give at most 8"),
        ({"rank": 0}, "rank without world_size; give both"),
        ({"rank": 3, "world_size": 2, "job": "x", "directory": "/tmp"}, "rank 3 is not .*; use 0 to 1"),
    ]:
        with pytest.raises(muster.Error, match=says):
            muster.Node(state=state, **options)
    with pytest.raises(muster.Error) as caught:
        state.add("x" * 300, numpy.zeros(1))
    assert caught.value.name == "MUSTER_E_ARGUMENT" and caught.value.rank is None
    assert PROGRAMS.is_dir()


def test_an_extra_installs_no_framework_that_its_module_refuses():
    text = (SOURCE / "client/python/pyproject.toml").read_text()
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    found = set(re.findall(r'"([a-z-]+)>=([\d.]+)"', extras))
    assert found == {(name, oldest) for name, (_, oldest) in _framework.TESTED.items()}
