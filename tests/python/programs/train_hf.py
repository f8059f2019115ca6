"""The example of a Hugging Face Trainer, slowly until its first preemption.

train_hf.py OUTPUT SECONDS [ARGUMENTS OF TrainingArguments, AS JSON]
"""

import hashlib
import json
import os
import pathlib
import signal
import sys
import time

import ends
import torch
from transformers import TrainerCallback

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "client/python/examples"))
import hf

from muster.transformers import Muster

output, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
arguments = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
late_handler = arguments.pop("late_handler", False)
torch.set_num_threads(1)


class Slow(TrainerCallback):
    def on_train_begin(self, args, state, control, **others):
        torch.manual_seed(100 + args.process_index)  # dropout differs between the ranks
        if late_handler:
            signal.signal(signal.SIGTERM, lambda *_: print("the late handler ran"))

    def on_step_end(self, args, state, control, **others):
        time.sleep(seconds if os.environ["MUSTER_RESTART_COUNT"] == "0" else 0)


cb = Muster()
trainer = hf.make(str(output / "trainer"), [cb, Slow()], **arguments)
checkpoint = cb.checkpoint
print(f"resumed {checkpoint}", flush=True)
with ends.told():
    trainer.train(resume_from_checkpoint=checkpoint)
weights, own = hashlib.sha256(), hashlib.sha256(torch.get_rng_state().numpy().tobytes())
for tensor in trainer.model.state_dict().values():
    weights.update(tensor.numpy().tobytes())
(output / "digests").mkdir(parents=True, exist_ok=True)
(output / "digests" / os.environ["RANK"]).write_text(
    f"{weights.hexdigest()} {own.hexdigest()} {trainer.state.global_step}"
)
torch.distributed.destroy_process_group()
