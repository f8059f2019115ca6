"""DistributedDataParallel: muster run -n 2 -- python torch_ddp.py [STEPS [SECONDS A STEP]]

The lines that muster adds or changes are marked. The result is the same bits, however often it is
preempted.
"""

import hashlib
import sys
import time

import torch
import torch.distributed as dist
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


def main(steps=400, seconds=0.01):
    dist.init_process_group("gloo")  # on GPUs "cpu:gloo,cuda:nccl"
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + dist.get_rank())
    data = Data(dist.get_rank())
    with muster.torch.Checkpointer(model=model, optimizer=optimizer, data=data) as ck:  # muster
        ck.restore()  # muster
        for _ in ck.steps(steps):  # was: for _ in range(steps):
            batch = next(data)
            loss = (model(batch).squeeze(-1) - batch.sum(-1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(seconds)
            ck.step()  # muster
    weights = b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())
    print(f"{steps} steps, weights {hashlib.sha256(weights).hexdigest()[:16]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))
