"""Two ranks that save by policies: train_manager.py STEPS SECONDS OUTPUT"""

import hashlib
import pathlib
import sys
import time

import ends
import numpy

import muster

steps, seconds, output = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
state = muster.TrainingState(w=numpy.zeros((8, 8)))
with ends.told(), muster.Manager(
    state=state,
    save=[muster.SaveEverySteps(50)],
    keep=[muster.KeepLatest(2), muster.KeepBest("loss")],
    name_prefix="step_",
    name_digits=6,
) as manager:
    restored = manager.restore()
    print(f"rank {manager.rank} of {manager.world_size} restored {restored}")
    for step in range(restored.step + 1 if restored else 0, steps):
        state["w"] += numpy.random.default_rng(step).standard_normal((8, 8))
        time.sleep(seconds if manager.generation == 1 else 0)
        manager.save(
            step, metrics={"loss": 1 / (step + 1)}, metadata={"at": step}, epoch=step // 100
        )
    if manager.rank == 0:
        manager.wait_until_finished(30)
        newest = manager.metadata(manager.latest_step())
        assert newest.metadata == {"at": newest.step} and newest.epoch == newest.step // 100
        assert manager.best_step("loss") == newest.step and manager.best_step("none") is None
        print("kept", [info.step for info in manager.all_steps()])
    digest = hashlib.sha256(state["w"].tobytes()).hexdigest()
output.mkdir(parents=True, exist_ok=True)
(output / str(restored is not None)).write_text(digest)
