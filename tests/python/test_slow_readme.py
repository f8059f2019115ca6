"""The programs of the package's page for frameworks run as they are printed: each is preempted once,
and resumes. What a page leaves to its reader, as Net and dataset, is in PRELUDES. That of PyTorch is
in test_slow_torch.py.
"""
# needs: torch
# needs: torchdata
# needs: accelerate
# needs: transformers
# needs: lightning
# needs: jax
# needs: orbax
# needs: keras
# needs: ray

import subprocess
import sys

import pytest
from conftest import HERE, await_that, page_blocks

PATIENCE = 240.0  # launches that each import a framework, on two loaded cores
EXAMPLES = HERE.parent.parent / "client/python/examples"

TORCH = """
import time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        time.sleep(seconds)
        return self.layer(x)

dataset = [torch.full((4,), float(number)) for number in range(256)]
"""
LOADER = """
from torchdata.stateful_dataloader import StatefulDataLoader
loader = StatefulDataLoader(dataset, batch_size=32, shuffle=True)
"""
PRELUDES = {
    "FSDP2 and distributed checkpoints": TORCH + LOADER,
    "Ray Train": TORCH
    + """
import os
import ray
import muster.torch
from ray.train import FailureConfig, RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, prepare_model
from ray_train import Data as Numbers

class Data(Numbers):
    def __next__(self):
        return super().__next__()[:, :4]
""",
    "Hugging Face Trainer": """
import time
import hf
from transformers import Trainer, TrainingArguments, set_seed

class Net(hf.Net):
    def forward(self, x, labels):
        time.sleep(seconds)
        return super().forward(x, labels)

set_seed(7)
args = TrainingArguments("output", max_steps=60, per_device_train_batch_size=8, use_cpu=True,
                         report_to="none", disable_tqdm=True)
model, data = Net(), hf.Data()
""",
    "Hugging Face Accelerate": TORCH
    + """
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
accelerator = Accelerator(
    dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
""",
    "Lightning": """
import time
import lightning as L
import lightning_ddp
from torchdata.stateful_dataloader import StatefulDataLoader
from torch.utils.data.distributed import DistributedSampler
import os

class Net(lightning_ddp.Net):
    def training_step(self, batch, batch_idx):
        time.sleep(seconds)
        self.trainer.should_stop = self.global_step >= 60
        return super().training_step(batch, batch_idx)

model, data = Net(), lightning_ddp.Data()
sampler = DistributedSampler(data, num_replicas=2, rank=int(os.environ["RANK"]))
loader = StatefulDataLoader(data, batch_size=8, sampler=sampler)
""",
    "JAX with Orbax": """
import time
from itertools import repeat
import jax, numpy
import orbax.checkpoint as ocp

def train_step(state, batch):
    time.sleep(seconds)
    return {"w": state["w"] + batch}

state, batches = {"w": numpy.zeros(8)}, repeat(numpy.ones(8))
path, options = os.path.abspath("orbax"), ocp.CheckpointManagerOptions(save_interval_steps=50)
""",
    "Keras": """
import time
import keras
import keras_fit

class Slow(keras.layers.Layer):
    def call(self, x):
        time.sleep(seconds)
        return x

model = keras.Sequential([keras_fit.make(), Slow()])
model.compile("adam", "mse", run_eagerly=True)
x, y = keras_fit.data()
""",
}
ALL = """
import os, sys
os.chdir(sys.argv[1])
seconds = 0.05 if os.environ.get("MUSTER_RESTART_COUNT", "0") == "0" else 0
sys.path.append(sys.argv[2])
"""


@pytest.mark.parametrize("section", [name for name in PRELUDES if name != "Ray Train"])
def test_the_program_of_the_page_is_preempted_and_resumes(world, section):
    program = (program_of(world, section), world.directory, EXAMPLES)
    launch = world.run(2, *program, options=("--max-failures", "0"))
    world.await_step(10, 2, PATIENCE)
    world.muster("notify", "--job", "job", "1")
    launch.finish(PATIENCE)
    resumed(world, launch.logs())


def test_the_program_of_the_page_is_started_again_by_ray(world):
    ray = {"RAY_USAGE_STATS_ENABLED": "0", "HOME": str(world.directory), "MUSTER_JOB": "job"}
    words = [sys.executable, program_of(world, "Ray Train"), world.directory, EXAMPLES]
    log = world.directory / "ray.log"
    env = {**world.env, **ray, "PYTHONPATH": f"{world.env['PYTHONPATH']}:{EXAMPLES}"}
    with log.open("w") as output:
        process = subprocess.Popen(words, env=env, stdout=output, stderr=output)
    try:
        await_that("steps", lambda: [row.done >= 10 for row in world.nodes()] == [True] * 2, PATIENCE)
        world.client.notify("job", 1)
        assert process.wait(PATIENCE) == 0, log.read_text()
    finally:
        process.kill()
    resumed(world, log.read_text())


def program_of(world, section):
    (block,) = page_blocks(section)
    path = world.directory / "program.py"
    path.write_text(ALL + PRELUDES[section] + block.replace("10_000", "60"))
    return path


def resumed(world, log):
    """One agreed checkpoint at the notice, from which the second launch went on."""
    first, second = sorted(world.client.generations("job"), key=lambda row: row.generation)
    assert second.resume_step >= 10, log
    assert {row.exit_code for row in world.client.nodes("job", first.generation)} == {42}, log
    assert {row.exit_code for row in world.client.nodes("job", second.generation)} == {0}, log
