"""Runs an example as it is, and prints a digest of the weights that it ends with: bits.py
torch|jax|keras undisturbed|noticed EXAMPLE. An example gives nothing back, so they are taken from
its framework. With `noticed` its first launch does two steps, and waits there for a notice.
"""

import functools
import hashlib
import runpy
import sys
import time

import numpy

import muster


def kept(owner, name, at):
    """Argument number `at` of each call of owner.name, as the list grows."""
    given, call = [], getattr(owner, name)

    @functools.wraps(call)
    def keeps(*arguments, **more):
        given.append(arguments[at])
        return call(*arguments, **more)

    setattr(owner, name, keeps)
    return given


def of_torch():
    import torch

    modules = kept(torch.nn.Module, "__init__", 0)

    def weights():
        for module in modules:
            for tensor in {**module._parameters, **module._buffers}.values():
                if tensor is not None:
                    whole = tensor.detach()
                    yield (whole.to_local() if hasattr(whole, "to_local") else whole).numpy()

    return weights


def of_jax():
    import jax
    import orbax.checkpoint as ocp

    import muster.jax  # noqa: F401  # tells JAX who the ranks are, before muster as after it

    states = kept(ocp.args.StandardSave, "__init__", 1)

    def weights():
        for leaf in jax.tree.leaves(states[-1]):
            yield from (shard.data for shard in leaf.addressable_shards)

    return weights


def of_keras():
    import keras

    models = kept(keras.Model, "fit", 0)
    return lambda: models[-1].get_weights()


def wait_for_a_notice(name):
    ends_step = getattr(muster.Manager, name)

    @functools.wraps(ends_step)
    def waits(manager, *arguments, **more):
        while manager.generation == 1 and manager.steps_done > 1 and manager.announced is None:
            time.sleep(0.01)
        return ends_step(manager, *arguments, **more)

    setattr(muster.Manager, name, waits)


of, how, sys.argv = sys.argv[1], sys.argv[2], sys.argv[3:]
if how == "noticed":
    wait_for_a_notice("should_save")
    wait_for_a_notice("save")
weights = {"torch": of_torch, "jax": of_jax, "keras": of_keras}[of]()
runpy.run_path(sys.argv[0], run_name="__main__")
digest, count = hashlib.sha256(), 0
for array in weights():
    digest.update(numpy.asarray(array).tobytes())
    count += array.size
assert count > 0
print(f"{count} weights: {digest.hexdigest()}", flush=True)
