"""Each rank saves by itself. The first save of rank 0 fails, and it trains on."""

import muster

options = {"save_fn": lambda context: None, "restore_fn": lambda context: None}
with muster.Manager(**options, layout="sharded") as manager:
    manager.restore()
    assert manager.should_save(0, force=True)
    if manager.rank == 0:
        manager.fail_save("No space left in gs://bucket")
    else:
        try:
            manager.save(0, force=True)
        except muster.SaveError as error:
            print(f"told: {error}")
    assert manager.save(1, force=True)
