"""What a boundary of Python's costs while nothing happens."""

import json


def costs(world, *words):
    text, _ = world.python("boundary.py", 2000, *words).communicate(timeout=60)
    return json.loads(text)


def test_A11_a_boundary_takes_at_most_1500_ns_and_half_more_than_an_empty_call(world):
    told = costs(world)
    assert told["step_us"] <= 1.5 and told["ratio"] <= 1.5, told  # 0.1 and 1.2, as a rule
    assert told["ratio_bare"] <= 2.2, told  # 1.6: an empty method of Python's takes 0.6 by itself


def test_A11_a_boundary_of_a_manager_takes_at_most_1500_ns(world):
    assert costs(world, "manager")["step_us"] <= 1.5
