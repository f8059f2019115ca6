"""Calls every public name of the package's classes once, and says which were not: every_call.py"""

import os

import numpy

import muster

called = set()


def record(cls):
    for name, value in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        place = f"{cls.__name__}.{name}"
        if isinstance(value, property):
            setattr(
                cls,
                name,
                property(lambda self, get=value.fget, at=place: (called.add(at), get(self))[1]),
            )
        elif callable(value):

            def call(*arguments, run=value, at=place, **named):
                called.add(at)
                return run(*arguments, **named)

            setattr(cls, name, call)
        wanted.add(place)


wanted = set()
for cls in (muster.Node, muster._member.Member, muster.Client, muster.TrainingState):
    record(cls)

state = muster.TrainingState(w=numpy.zeros(3))
state.add("b", numpy.zeros((2, 2), "float32"))
state.add_bytes("blob", bytearray(8))
begin, count = muster.split_range(10, 0, 1)
state.add_split("part", numpy.zeros((count, 2)), (10, 2), 0, begin)
state.remove("b")
assert (
    list(state) == ["w", "blob", "part"]
    and state.size_bytes == 3 * 8 + 8 + 10 * 2 * 8
    and len(state) == 3
)
state["w"] = [1, 2, 3]
assert state["w"].sum() == 6
try:
    with muster.Node(
        state=state, layout="sharded", save_every=2, grace=20, join_timeout=30
    ) as node:
        assert (node.rank, node.world_size, node.resumed_step, node.restart_code) == (0, 1, 0, 42)
        assert node.generation == 1 and node.is_open and not node.reached_preemption(5)
        assert node.position == muster.Position()
        node.set_position(epoch=1, step_in_epoch=2)
        node.save_progress(1)
        assert list(node.events(timeout=0)) == []
        with node.hold():
            pass
        with node.scope():
            pass
        node.step()
        node.step()
        node.wait_until_saved(30)
        assert not node.is_saving and node.steps_done == 3
        assert node.announced is None
        with muster.Client(timeout=20) as client:
            job = os.environ["MUSTER_JOB"]
            assert client.jobs()[0].job == job and not client.is_database
            assert client.place == os.environ["MUSTER_BROKER"]
            while not client.latest(job)[0].in_place:
                pass  # its final name comes behind the commit
            (checkpoint,) = client.latest(job)
            assert (checkpoint.step, checkpoint.epoch, checkpoint.in_place) == (2, 1, True)
            number = checkpoint.checkpoint
            assert client.checkpoints(job) == client.checkpoint(job, number) == [checkpoint]
            assert client.shards(job, number) and client.files(job, number) and client.nodes(job)
            (round,) = client.rounds(job)
            assert client.round(job) == client.attempts(job, round.round) == [round]
            assert (
                client.participants(job, round.round)
                and client.generations(job)
                and client.events(job)
            )
            client.incidents(job, 1), client.task_queues()
            client.tasks(job), client.task_workers(job)
            assert client.hosts(job) == []  # the ranks were started by hand
            assert [row.trash for row in client.policies(job)] in ([], [""])
            facts = client.broker()
            assert facts["jobs_running"] == 1 and facts["refused_authority"] == 0
            assert 0 < facts["started_unix_s"] <= facts["now_unix_s"] and facts["database"]
            assert client.save_now(job) > round.round
            client.notify(job, 0, left=600, text="later", id="mine")
            assert client.notices(job)[0].left_s == 600.0
            client.cancel(job, "mine")
            try:
                client.cancel(job, "nobody's")
            except muster.Error as error:
                assert error.name == "MUSTER_E_NOT_FOUND" and error.advice and error.exit_code == 1
            assert not [row.extra for row in client.nodes(job) + client.jobs() if row.extra]
        node.notify("user", left=0)
        try:
            while True:
                node.step()
        except muster.Preempted as preempted:
            assert preempted.code == 42 and preempted.text
    raise SystemExit("the end of the block did not tell of the preemption")
except muster.Preempted as preempted:
    assert preempted.code == 42
node = muster.Node(state=state, layout="sharded", restore_later=True)
assert node.resumed_step == 0
node.restore()
assert node.steps_done == node.resumed_step > 0
node.fail("on purpose")
try:
    node.step()
except muster.StepError as error:
    assert "on purpose" in str(error)
node.close(1)
print("missing:", sorted(wanted - called))
