"""JAX with Orbax on any number of processes that may be preempted:
muster run -n 2 -- python jax_orbax.py [DIRECTORY]

The lines that muster adds or changes are marked. With the same number of processes the result is
the same bits, however often it is preempted.
"""

import functools
import os
import sys

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import muster.orbax  # muster

FEATURES, BATCH = 96, 24  # rows of the weights, and of a batch, over all processes


def batch_of(step, mesh):
    """What this process trains on at a step: other rows than any other process."""
    mine = BATCH // jax.process_count()
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(7), step), jax.process_index())
    x = jax.random.normal(key, (mine, FEATURES))
    return multihost_utils.host_local_array_to_global_array(x, mesh, PartitionSpec("data"))


def loss_of(w, x):
    return jnp.mean(jnp.square(x @ w["kernel"] + w["bias"] - jnp.sin(x)))


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, x):
    loss, grad = jax.value_and_grad(loss_of)(state["weights"], x)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grad)
    weights = jax.tree.map(lambda w, m: w - 0.05 * m, state["weights"], momentum)
    return {"weights": weights, "momentum": momentum}, loss


def first_state(mesh):
    """Each process holds its rows of the kernel; the bias is on all."""

    def make(key):
        weights = {
            "kernel": jax.random.normal(key, (FEATURES, FEATURES)) / FEATURES,
            "bias": jnp.zeros(FEATURES),
        }
        return {"weights": weights, "momentum": jax.tree.map(jnp.zeros_like, weights)}

    part = {"kernel": NamedSharding(mesh, PartitionSpec("data"))}
    part["bias"] = NamedSharding(mesh, PartitionSpec())
    return jax.jit(make, out_shardings={"weights": part, "momentum": part})(jax.random.key(0))


def train(directory, steps, *, behind=lambda step: None, **options):
    mesh = Mesh(jax.devices(), ("data",))
    options = ocp.CheckpointManagerOptions(**{"save_interval_steps": 50, **options})
    state = first_state(mesh)
    with muster.orbax.CheckpointManager(directory, options=options) as mngr:  # was: ocp.
        latest = mngr.latest_step()
        print(f"resumed {latest}", flush=True)
        if latest is not None:
            state = mngr.restore(latest, args=ocp.args.StandardRestore(state))
        for step in range(0 if latest is None else latest + 1, steps):
            state, loss = train_step(state, batch_of(step, mesh))
            jax.block_until_ready(loss)
            behind(step)
            mngr.save(step, args=ocp.args.StandardSave(state))  # raises muster.Preempted
    return state


if __name__ == "__main__":
    jax.distributed.initialize()
    directory = sys.argv[1] if len(sys.argv) > 1 else "jax_orbax"
    train(os.path.abspath(directory), 1000, max_to_keep=3)
