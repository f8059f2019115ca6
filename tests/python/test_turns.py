"""One call at a time: who comes to an object while it is in a call is refused, and nothing crashes."""

import socket

import pytest

OBJECTS = ["reader", "client", "node", "manager", "coordinator"]


def refused(world, what, **env):
    """What the program says that comes to its object again, and was refused."""
    process = world.python("turns.py", what, env=env)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 3, (process.returncode, text)
    return text


@pytest.mark.parametrize("by", ["signal", "thread"])
@pytest.mark.parametrize("what", OBJECTS)
def test_a_handler_or_another_thread_is_refused_in_the_middle_of_a_call(world, what, by):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        text = refused(world, f"{what}-{by}", MUSTER_WORLD_SIZE="2", SILENT=address)
    assert "in another call" in text and "ended by" in text


@pytest.mark.parametrize("inside", ["step", "close", "restore"])
def test_a_callable_of_a_node_that_calls_the_node_is_refused(world, inside):
    text = refused(world, f"save-{inside}")
    assert "ended by ArgumentError: this muster.Node is in another call" in text


@pytest.mark.parametrize("change", ["resized", "shaped", "behind"])
def test_a_state_whose_memory_changed_while_it_is_open_is_named_and_not_read(world, change):
    text = refused(world, f"state-{change}")
    assert "state 'w' has other memory than when it was added" in text
    assert "committed" not in {row.state for row in world.client.checkpoints("job")}


def test_a_state_whose_memory_changed_is_named_before_a_restore_fills_it(world):
    text = refused(world, "state-restored")
    assert "ended by ArgumentError: state 'w' has other memory than when it was added" in text
