"""Blocks in one call of a module for a framework until Ctrl-C: wait_adapter.py torch | orbax

torch: restores, and rank 1 never comes. orbax: saves while the broker sleeps.
"""

import sys
import time


def restores():
    import torch

    import muster.torch

    with muster.torch.Checkpointer(model=torch.nn.Linear(4, 1)) as ck:
        print("blocks", flush=True)
        ck.restore()


def saves():
    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    import muster.orbax

    with muster.orbax.CheckpointManager(sys.argv[2]) as mngr:
        mngr.save(0, args=ocp.args.StandardSave({"w": jnp.zeros(4)}))
        print("the broker sleeps from here on", flush=True)
        sys.stdin.readline()
        print("blocks", flush=True)
        mngr.save(1, args=ocp.args.StandardSave({"w": jnp.ones(4)}))


began = time.monotonic()
try:
    {"torch": restores, "orbax": saves}[sys.argv[1]]()
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
