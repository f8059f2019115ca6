"""Blocks in one call of a module for a framework until Ctrl-C: wait_adapter.py MODULE

orbax: saves while the broker sleeps. preempt: a job makes no step. torch_meets, jax_meets: another
rank never comes to the place. Others: restores, and rank 1 never comes.
"""

import sys
import time


def restores(checkpointer):
    with checkpointer:
        print("blocks", flush=True)
        checkpointer.restore()


def of_torch():
    import torch

    import muster.torch

    restores(muster.torch.Checkpointer(model=torch.nn.Linear(4, 1)))


def of_dcp():
    import torch

    import muster.dcp

    restores(muster.dcp.Checkpointer(model=torch.nn.Linear(4, 1)))


def of_accelerate():
    import torch
    from accelerate import Accelerator

    import muster.accelerate

    accelerator = Accelerator(cpu=True)
    accelerator.prepare(torch.nn.Linear(4, 1))
    restores(muster.accelerate.Checkpointer(accelerator))


def of_transformers():
    import torch
    from transformers import Trainer, TrainingArguments

    from muster.transformers import Muster

    arguments = TrainingArguments(output_dir="x", use_cpu=True, report_to="none")
    Trainer(torch.nn.Linear(4, 1), arguments, callbacks=[cb := Muster()])
    print("blocks", flush=True)
    print(cb.checkpoint)


def of_lightning():
    from muster.lightning import Muster

    print("blocks", flush=True)
    print(Muster().ckpt_path)


def of_keras():
    import keras
    import numpy

    from muster.keras import BackupAndRestore

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    print("blocks", flush=True)
    model.fit(numpy.ones((8, 4)), numpy.ones((8, 1)), verbose=0, callbacks=[BackupAndRestore("x")])


def of_jax():
    import muster.jax

    print("blocks", flush=True)
    muster.jax.PreemptionSync("x")


def of_torch_meets():
    import muster.torch

    print("blocks", flush=True)
    muster.torch.init_process_group("gloo")


def of_jax_meets():
    import muster.jax

    print("blocks", flush=True)
    muster.jax.initialize()


def of_preempt():
    from muster.testing import preempt

    print("blocks", flush=True)
    preempt(["sleep", "600"], directory="x", patience=600)


def of_orbax():
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
    globals()[f"of_{sys.argv[1]}"]()
except KeyboardInterrupt as interrupt:
    notes = getattr(interrupt, "__notes__", None)
    print(f"KeyboardInterrupt after {time.monotonic() - began:.3f} s: {notes}", flush=True)
    sys.exit(130)
