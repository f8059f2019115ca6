"""A wrong argument of any call is an exception of muster's own, which names it and says what to
give. What was open stays open.
"""

import contextlib
import os

import numpy
import pytest

import muster


def node():
    return muster.Node(state=muster.TrainingState(w=numpy.zeros(2)))


def manager(**options):
    return muster.Manager(state=muster.TrainingState(w=numpy.zeros(2)), **options)


def of_node(call):
    with node() as opened:
        call(opened)


def of_manager(call):
    with manager() as opened:
        opened.restore()
        call(opened)


def of_client(call):
    with muster.Client() as client:
        call(client)


def with_path(opened):
    assert opened.should_save(0, force=True)
    opened.save(0, path=5)


def saving(**given):
    return lambda: of_manager(lambda m: m.save(0, force=True, **given))


def split(**given):
    part = {"whole_shape": (4,), "axis": 0, "begin": 0, **given}
    return muster.TrainingState().add_split("w", numpy.zeros(2), **part)


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


WRONG = [
    # Node
    (lambda: muster.Node(signals=5), "signals is 5; give a list"),
    (lambda: muster.Node(signals=[0]), "signals has 0, which cannot be a notice"),
    (lambda: muster.Node(signals=[-5]), "signals has -5, which cannot"),
    (lambda: muster.Node(signals=[11]), "signals has 11, which cannot"),
    (lambda: muster.Node(signals=[9]), "signals has 9, which cannot"),
    (lambda: muster.Node(layout=[]), r"layout is \[\]; give one of"),
    (lambda: muster.Node(save_behind="no"), "save_behind is 'no'; give True or False"),
    (lambda: muster.Node(offline_ok="no"), "offline_ok is 'no'; give True or False"),
    (lambda: of_node(lambda n: n.fail("text", "a")), "code is 'a'; give a whole number"),
    (lambda: of_node(lambda n: n.save_progress("x")), "written_bytes is 'x'"),
    (lambda: of_node(lambda n: n.save_progress(-1)), "written_bytes is -1; give 0 or more"),
    (lambda: of_node(lambda n: n.set_position("x")), "epoch is 'x'"),
    (lambda: of_node(lambda n: n.set_position(data_position=-7)), "data_position is -7; give 0"),
    (lambda: of_node(lambda n: n.reached_preemption("x")), "step is 'x'"),
    (lambda: of_node(lambda n: n.reached_preemption(1 << 70)), "step is 1180591620717411303424;"),
    (lambda: of_node(lambda n: n.notify([])), r"kind is \[\]; give one of"),
    # Manager
    (lambda: muster.Manager(state=5), "state is a int; give muster.TrainingState"),
    (lambda: muster.Manager(state=[]), "state is a list; give muster.TrainingState"),
    (lambda: of_manager(lambda m: m.should_save(-1)), "step is -1"),
    (lambda: of_manager(lambda m: m.save(-1)), "step is -1"),
    (lambda: of_manager(lambda m: m.should_save(0, force="yes")), "force is 'yes'; give True or"),
    (lambda: of_manager(lambda m: m.save(0, force="yes")), "force is 'yes'; give True or False"),
    (lambda: of_manager(lambda m: m.reached_preemption("x")), "step is 'x'"),
    (lambda: of_manager(lambda m: m.reached_preemption(1 << 70)), "step is 1180591620717411303424;"),
    (lambda: of_manager(with_path), "path is 5; give it as text"),
    (saving(path=5, metadata=[]), "metadata is a list; give a dict"),
    (lambda: manager(save=5), "save is 5; give a list of policies"),
    (lambda: manager(save=muster.SaveFirst()), r"save is SaveFirst\(\); give a list of policies"),
    (lambda: manager(keep=[muster.KeepBest(5)]), "metric is 5; give it as text"),
    (lambda: manager(keep=[muster.KeepBest("loss", greatest="no")]), "greatest is 'no'; give True"),
    (lambda: manager(keep=[muster.KeepLatest("x")]), "number is 'x'; give a whole number"),
    (lambda: manager(keep=[muster.KeepEverySteps(2, max_to_keep="x")]), "max_to_keep is 'x'"),
    (lambda: manager(save=[muster.SaveSteps(["x"])]), "steps is 'x'; give a whole number"),
    (lambda: manager(save=[muster.SaveSteps(5)]), "steps is 5; give a list of steps"),
    (lambda: manager(save=[muster.SaveShare("x")]), "share is 'x'; give a number"),
    (lambda: manager(trash=5), "trash is 5; give it as text"),
    (lambda: manager(name_prefix=5), "name_prefix is 5; give it as text"),
    (lambda: manager(name_digits="x"), "name_digits is 'x'"),
    (lambda: manager(colour="red"), "Manager has no option 'colour'"),
    (lambda: manager(restore_later=True), "Manager has no option 'restore_later'"),
    (saving(metadata=[1]), "metadata is a list; give a dict"),
    (saving(metadata={"a": float("nan")}), "metadata is no JSON"),
    (saving(metadata={"a": "\udcff"}), "metadata is no JSON"),
    (saving(metadata=nested(100_000)), "metadata is no JSON"),
    (saving(metadata={"a": "x" * 20_000}), "metadata is 20009 bytes of JSON, and at most 16383"),
    (saving(epoch=-7), "epoch is -7; give 0 or more"),
    # TrainingState
    (lambda: muster.TrainingState([1]), "state is a list; give a dict"),
    (lambda: split(axis="x"), "axis is 'x'"),
    (lambda: split(begin="x"), "begin is 'x'"),
    (lambda: split(whole_shape=(4.5,)), "whole_shape of state 'w' is 4.5"),
    (lambda: muster.split_range(-3, 0, 1), "length is -3; give 0 or more"),
    (lambda: muster.split_range(3, 5, 2), "rank is 5 of a world of 2"),
    (lambda: muster.split_range(3, 0, 0), "rank is 0 of a world of 0"),
    # the others
    (lambda: muster.read(5), "path is 5; give it as text"),
    (lambda: muster.read("x", rank="y"), "rank is 'y'"),
    (lambda: of_client(lambda c: c.nodes(5)), "job is 5; give it as text"),
    (lambda: of_client(lambda c: c.nodes("job", "x")), "generation is 'x'"),
    (lambda: of_client(lambda c: c.events("job", kind=5)), "kind is 5"),
    (lambda: of_client(lambda c: c.notify("job", "x")), "rank is 'x'"),
    (lambda: of_client(lambda c: c.notify("job", 0, text=5)), "text is 5; give it as text"),
    (lambda: of_client(lambda c: c.cancel("job", 5)), "id is 5; give it as text"),
    (lambda: muster.Worker(None), "functions is None; give a dict of callables"),
    (lambda: muster.Worker({"f": 5}), "function 'f' is an? int; give a callable"),
]


@pytest.mark.parametrize("call, says", WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_argument_is_named(alone, call, says):
    with pytest.raises(muster.ArgumentError, match=says):
        call()


@pytest.mark.parametrize("code", ["x", 1 << 40, 1.5])
def test_a_node_that_is_closed_with_a_wrong_code_stays_open(alone, code):
    opened = node()
    with pytest.raises(muster.ArgumentError, match=f"code is {code!r}"):
        opened.close(code)
    assert opened.is_open
    opened.step()
    opened.close()
    row = alone.client.nodes("job")[0]
    assert (row.state, row.exit_code) == ("left", 0)


@pytest.mark.parametrize("code, left", [(1 << 40, 0), (1 << 80, 255), (-1, 255), (3, 3), ("x", 1)])
def test_an_exit_code_that_no_process_can_have_is_cut_as_the_system_cuts_it(alone, code, left):
    with pytest.raises(SystemExit) as caught, node():
        raise SystemExit(code)
    assert caught.value.code == code
    row = alone.client.nodes("job")[0]
    assert (row.state, row.exit_code) == ("left", left)


@pytest.mark.parametrize("call", ["fail", "fail_save", "notify"])
def test_what_needs_a_rank_says_so_before_the_restore(alone, call):
    with contextlib.closing(manager()) as opened:
        with pytest.raises(muster.UsageError, match=rf"{call} needs a rank .* call restore\(\)"):
            getattr(opened, call)(*(["user"] if call == "notify" else ["text"]))
        opened.restore()


def test_a_failure_of_no_save_is_refused(alone):
    with manager() as opened:
        opened.restore()
        with pytest.raises(muster.UsageError, match="no save is open"):
            opened.fail_save("text")
        assert opened.should_save(0, force=True)
        opened.fail_save("text")
        with pytest.raises(muster.UsageError, match="no save is open"):
            opened.save(1)
            opened.fail_save("text")


class Untold(Exception):
    def __str__(self):
        raise RuntimeError("no text today")


RAISED = [
    (ValueError("cannot read " + os.fsdecode(b"\xff.png")), r"cannot read \udcff.png"),
    (ValueError("a\0b"), r"a\x00b"),
    (Untold(), "Untold: (its text cannot be had: RuntimeError)"),
]


def in_the_block(raised):
    with node():
        raise raised


def in_a_scope(raised):
    with node() as opened, opened.scope():
        raise raised


def in_a_save(raised):
    def save(context):
        raise raised

    with muster.Node(save=save, restore=lambda context: None, save_every=1) as opened:
        opened.step()
        opened.step()


@pytest.mark.parametrize("place", [in_the_block, in_a_scope, in_a_save])
@pytest.mark.parametrize("raised, told", RAISED, ids=["surrogate", "NUL", "no text"])
def test_an_exception_whose_text_C_cannot_hold_goes_on_and_is_told(alone, place, raised, told):
    with pytest.raises(type(raised)) as caught:
        place(raised)
    assert caught.value is raised
    row = alone.client.nodes("job")[0]
    assert row.state == "left" and row.exit_code == 1
    assert any(told in event.text for event in alone.client.events("job")), (
        alone.client.events("job")
    )
