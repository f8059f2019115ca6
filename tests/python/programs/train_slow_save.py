"""Saves take so many seconds, in which nobody reports a byte: train_slow_save.py SECONDS HOW

HOW: callable = Node(save=...), two-phase = Manager.should_save ... save.
"""

import pathlib
import sys
import time

import muster

seconds, how = float(sys.argv[1]), sys.argv[2]


def write(path):
    time.sleep(seconds)
    path.write_text("x" * 1000)


def tell(announced):
    if announced is not None and announced.save_in is not None:
        print(f"left {announced.left:.0f} save in {announced.save_in:.0f}", flush=True)


if how == "callable":
    save, restore = (lambda context: write(context.directory / "state")), lambda context: None
    with muster.Node(save=save, restore=restore, layout="sharded") as node:
        while True:
            time.sleep(0.05)
            tell(node.announced)
            node.step()
else:
    place = {}

    def point(context):
        (context.directory / "pointer").write_text(str(place["path"]))

    with muster.Manager(save_fn=point, restore_fn=lambda context: None) as manager:
        manager.restore()
        step = 0
        while True:
            time.sleep(0.05)
            tell(manager.announced)
            if manager.should_save(step):
                place["path"] = pathlib.Path(sys.argv[3], f"own-{step}")
                write(place["path"])
                manager.save(step, path=place["path"])
            step += 1
