"""Two ranks save step 1 by themselves: late_notice.py DIRECTORY STEPS. Rank 1 is done with it only
when the file `go` is there. Before each step a rank prints it.
"""

import pathlib
import sys
import time

import muster

directory, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
options = {"save_fn": lambda context: None, "restore_fn": lambda context: None}
with muster.Manager(**options, layout="sharded") as manager:
    restored = manager.restore()
    for step in range(restored.step + 1 if restored else 0, steps):
        print(f"rank {manager.rank} begins step {step}", flush=True)
        if manager.should_save(step, force=step == 1):
            while manager.rank == 1 and not (directory / "go").exists():
                time.sleep(0.01)
            manager.save(step)
        time.sleep(0.02)
