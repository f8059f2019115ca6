"""The example of JAX with Orbax, slowly until its first preemption.

train_orbax.py OUTPUT STEPS SECONDS [OPTIONS OF CheckpointManagerOptions, AS JSON]
"""

import hashlib
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "client/python/examples"))
import ends
import jax
import jax_orbax
import numpy
from jax.experimental import multihost_utils

import muster._elsewhere

output, steps, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
launches = options.pop("slow_launches", 1)  # so many are slow, for a test to hit them
dies_at = options.pop("dies_at", None)  # rank 1 does, when Orbax has written this step
killed_at = options.pop("killed_at", None)  # rank 1 is, after this step
launch = int(os.environ["MUSTER_RESTART_COUNT"])


def behind(step):
    if step == killed_at and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds if launch < launches else 0)


def whole_digest(state):
    """Of what all processes hold together."""
    whole = multihost_utils.process_allgather(state, tiled=True)
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(whole):
        digest.update(numpy.asarray(leaf).tobytes())
    return digest.hexdigest()


class Elsewhere(muster._elsewhere.Elsewhere):
    def commit(self, step, *arguments, **named):
        if step == dies_at and launch == 0 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().commit(step, *arguments, **named)


class CheckpointManager(muster.orbax.CheckpointManager):
    def restore(self, *arguments, **named):
        state = super().restore(*arguments, **named)
        print("restored", whole_digest(state), flush=True)
        return state


muster.orbax.Elsewhere = Elsewhere
muster.orbax.CheckpointManager = CheckpointManager
if options.pop("own_initialize", False):  # with JAX's own preemption service
    jax.config.update("jax_enable_preemption_service", True)
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
else:
    jax.distributed.initialize()
with ends.told():
    state = jax_orbax.train(str(output / "orbax"), steps, behind=behind, **options)
print("ended", whole_digest(state), flush=True)
own = hashlib.sha256()  # of what this process holds
for leaf in jax.tree.leaves(state):
    for shard in leaf.addressable_shards:
        own.update(numpy.asarray(shard.data).tobytes())
(output / "digests").mkdir(parents=True, exist_ok=True)
(output / "digests" / str(jax.process_index())).write_text(own.hexdigest())
