"""Ray Train, which starts the ranks again: python ray_train.py [STEPS [SECONDS A STEP]]

MUSTER_BROKER, MUSTER_JOB and MUSTER_CHECKPOINT_DIR say where; all ranks see the directory. The
lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import hashlib
import os
import sys
import time

import ray
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

import muster.torch  # muster


class Data:
    """An endless stream of this rank's own, which knows where it is."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self):
        return torch.randn(8, 16, generator=self.generator)

    def state_dict(self):
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.generator.set_state(state["generator"])


def train(config):
    rank = get_context().get_world_rank()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1))
    model = prepare_model(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + rank)
    data = Data(rank)
    with muster.torch.Checkpointer(model=model, optimizer=optimizer, data=data) as ck:  # muster
        ck.restore()  # muster
        for _ in ck.steps(config["steps"]):  # was: for _ in range(config["steps"]):
            batch = next(data)
            loss = (model(batch).squeeze(-1) - batch.sum(-1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(config["seconds"])
            ck.step()  # muster
    weights = b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())
    print(f"{config['steps']} steps, weights {hashlib.sha256(weights).hexdigest()[:16]}")


def main(steps=400, seconds=0.01):
    told = {name: os.environ[name] for name in os.environ if name.startswith("MUSTER_")}  # muster
    ray.init(runtime_env={"env_vars": told})  # was: ray.init()
    TorchTrainer(
        train,
        train_loop_config={"steps": steps, "seconds": seconds},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=-1)),  # so it counts them
    ).fit()


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))
