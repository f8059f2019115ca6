"""An example as it was before muster, slowly: train_before.py EXAMPLE OUTPUT"""

import os
import pathlib
import signal
import sys
import time

from conftest import HERE, without_muster

example, output = sys.argv[1], pathlib.Path(sys.argv[2])
rank = int(os.environ.get("RANK", "0"))  # Ray tells it in another way


def of_example(name, **names):
    """What the example defines without muster's lines."""
    text, _ = without_muster(HERE.parent.parent / "client/python/examples" / f"{name}.py")
    names["__name__"] = "before"
    exec(compile(text, name, "exec"), names)
    return names


def slowly(step):
    time.sleep(0.1)
    if step == 5:
        (output / f"step-{rank}").touch()


def hf():
    from transformers import TrainerCallback

    class Slow(TrainerCallback):
        def on_step_end(self, args, state, control, **others):
            slowly(state.global_step)

    made = of_example("hf")["make"]
    trainer = made(str(output / "trainer"), enable_jit_checkpoint=True)
    trainer.add_callback(Slow())
    trainer.train()


def lightning_ddp():
    import lightning

    class Slow(lightning.Callback):
        def on_train_batch_end(self, trainer, *others):
            slowly(trainer.global_step)

    names = of_example("lightning_ddp")
    trainer, loader = names["make"]()
    trainer.callbacks.append(Slow())
    trainer.fit(names["Net"](), loader)


def torch_pair():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    return torch, torch.nn.Linear(16, 1)


def torch_ddp():
    """A save every 50 steps, as a program does that knows nothing of preemption."""
    torch, net = torch_pair()
    model = torch.nn.parallel.DistributedDataParallel(net)
    for step in range(1, 1001):
        model(torch.randn(8, 16)).mean().backward()
        if rank == 0:
            (output / "done").write_text(str(step))
        if step % 50 == 0 and rank == 0:
            torch.save({"step": step, "model": net.state_dict()}, output / "last.pt")
        slowly(step // 16)


def ray_train():
    """A checkpoint every 50 steps; the process of rank 1 gets SIGTERM after its 80th, and ends
    about a second later.
    """
    import tempfile

    import ray
    import torch
    from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    def train(config):
        found, first, me = ray.train.get_checkpoint(), 1, ray.train.get_context().get_world_rank()
        if found is not None:
            with found.as_directory() as directory:
                first = torch.load(pathlib.Path(directory, "last.pt"))["step"] + 1
        for step in range(first, 201):
            time.sleep(0.1)  # Ray asks its workers for reports every 2 s
            torch.distributed.all_reduce(torch.zeros(1))
            if me == 0:
                with (output / "updates").open("a") as file:
                    file.write("x")
            elif step == 80 and first == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if step % 50 == 0:
                with tempfile.TemporaryDirectory() as directory:
                    torch.save({"step": step}, pathlib.Path(directory, "last.pt"))
                    saved = Checkpoint.from_directory(directory) if me == 0 else None
                    ray.train.report({"step": step}, checkpoint=saved)

    ray.init()
    TorchTrainer(
        train,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            storage_path=str(output / "ray"), failure_config=FailureConfig(max_failures=-1)
        ),
    ).fit()


def fsdp_dcp():
    """One process is killed in a save; the folder that it leaves is the newest one."""
    import torch.distributed.checkpoint as dcp

    _, net = torch_pair()

    class Killed(dcp.FileSystemWriter):
        def write_data(self, plan, planner):
            written = super().write_data(plan, planner)
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return written

    state = {"model": net.state_dict()}
    if (output / "2").exists():
        dcp.load(state, checkpoint_id=output / "2")
    dcp.save(state, checkpoint_id=output / "1")
    dcp.save(state, storage_writer=Killed(output / "2"))


def accelerate_loop():
    """Every rank stops at another place in its data, and saves that."""
    import torch
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    config = DataLoaderConfiguration(use_stateful_dataloader=True)
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    loader = accelerator.prepare(torch.utils.data.DataLoader(range(640), batch_size=8))
    batches = iter(loader)
    for _ in range(3 + rank):
        next(batches)
    accelerator.save_state(str(output / "state"))


def keras_fit():
    import keras

    class Counted(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            with (output / "updates").open("a") as file:
                file.write("x")
            if self.epoch == 1 and batch == 19 and not (output / "again").exists():
                (output / "again").touch()
                os.kill(os.getpid(), signal.SIGKILL)

        def on_epoch_begin(self, epoch, logs=None):
            self.epoch = epoch

    names = of_example("keras_fit")
    names["train"](names["make"](), str(output / "backup"), [Counted()], save_freq=15)


def jax_orbax():
    """Two notices, of which the second comes when the first one's save is long over."""
    import jax

    jax.distributed.initialize(os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"], 2, rank)

    def behind(step):
        time.sleep(0.02)
        if step in (20, 250):
            (output / f"step-{rank}-{step}").touch()

    of_example("jax_orbax")["train"](
        output / "checkpoints", 400, behind=behind, save_interval_steps=10_000
    )


globals()[example]()
print("the training ended", flush=True)
