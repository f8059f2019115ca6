"""An example as it was before muster, slowly: train_before.py EXAMPLE OUTPUT"""

import os
import pathlib
import sys
import time

from conftest import HERE, without_muster

example, output = sys.argv[1], pathlib.Path(sys.argv[2])
text, _ = without_muster(HERE.parent.parent / "client/python/examples" / f"{example}.py")
names = {"__name__": "before", "cb": None}
exec(compile(text, example, "exec"), names)


def slowly(step):
    time.sleep(0.1)
    if step == 5:
        (output / f"step-{os.environ['RANK']}").touch()


if example == "hf":
    from transformers import TrainerCallback

    class Slow(TrainerCallback):
        def on_step_end(self, args, state, control, **others):
            slowly(state.global_step)

    trainer, _ = names["make"](str(output / "trainer"), enable_jit_checkpoint=True)
    trainer.add_callback(Slow())
    trainer.train()
else:
    import lightning

    class Slow(lightning.Callback):
        def on_train_batch_end(self, trainer, *others):
            slowly(trainer.global_step)

    trainer, _, loader = names["make"]()
    trainer.callbacks.append(Slow())
    trainer.fit(names["Net"](), loader)
print("the training ended", flush=True)
