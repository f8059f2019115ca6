"""One call at a time: who comes to an object while it is in a call is refused, and nothing crashes."""

import socket

import pytest

OBJECTS = ["reader", "client", "node", "manager", "coordinator"]


@pytest.mark.parametrize("by", ["signal", "thread"])
@pytest.mark.parametrize("what", OBJECTS)
def test_a_handler_or_another_thread_is_refused_in_the_middle_of_a_call(world, what, by):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {"MUSTER_WORLD_SIZE": "2", "SILENT": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        process = world.python("turns.py", f"{what}-{by}", env=env)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 3, (process.returncode, text)
    assert "in another call" in text and "ended by" in text


@pytest.mark.parametrize("inside", ["step", "close", "restore"])
def test_a_callable_of_a_node_that_calls_the_node_is_refused(world, inside):
    process = world.python("turns.py", f"save-{inside}")
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 3, (process.returncode, text)
    assert "ended by ArgumentError: this muster.Node is in another call" in text


@pytest.mark.parametrize("change", ["resized", "shaped", "behind"])
def test_a_state_whose_memory_changed_while_it_is_open_is_named_and_not_read(world, change):
    process = world.python("turns.py", f"state-{change}")
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 3, (process.returncode, text)
    assert "state 'w' has other memory than when it was added" in text
    assert "committed" not in {row.state for row in world.client.checkpoints("job")}
