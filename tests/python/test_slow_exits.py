"""A9: exits at random moments: 200, and some beside the threads and processes of a framework."""
# needs: torch
# needs: jax

import pytest
from test_node import PHASES, exits_at_random_moments


@pytest.mark.parametrize("beside, count", [("", 200), ("torch", 36), ("jax", 36)])
def test_A9_exits_beside_a_framework_neither_crash_nor_hang(world, beside, count):
    seen = exits_at_random_moments(world, count, beside)
    assert beside or seen == set(PHASES), seen
