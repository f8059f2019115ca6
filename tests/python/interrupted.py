"""Which test breaks off which call by Ctrl-C, by a word that a program of programs/ gets."""

# wait.py: a broker that takes connections and says nothing; other ranks that never come; a broker
# that is stopped.
SILENT = ("open", "client", "asks", "reader")
JOINS = (
    *("step", "scope", "suspects", "manager", "finished", "saves", "should_save"),
    *("node", "leaves", "close"),
)
SLEEPS = ("step", "trains", "suspects", "manager", "saves", "node", "deletes")
SLOW = ("restore", "node", "read", "save", "alone")  # slow_disk.py
# coordinate.py: nobody runs the task, and the broker is stopped.
IDLE, DEAF = ("join", "fetch", "full", "open"), ("flush", "value", "join", "close")

WORDS = {
    "wait.py": {*SILENT, *JOINS, *SLEEPS, "directory"},
    "each of wait.py": {"Client", "Manager", "Reader"},
    "slow_disk.py": {*SLOW},
    "coordinate.py": {*IDLE, *DEAF},
    "test_tasks.py": {"serve"},
    "test_log.py": {"events"},
    "wait_adapter.py": {
        *("torch", "dcp", "accelerate", "transformers", "lightning", "keras", "jax"),
        *("torch_meets", "jax_meets", "preempt"),
    },
    "test_slow_orbax.py": {"wait_adapter.py", "wait_agree.py"},
}

STEPS = ("all_steps", "latest_step", "best_step", "metadata", "pin", "unpin")
CLIENT = (
    *("attempts", "broker", "cancel", "checkpoint", "checkpoints", "events", "files"),
    *("generations", "hosts", "incidents", "jobs", "latest", "nodes", "notices", "notify"),
    *("participants", "policies", "round", "rounds", "save_now", "shards", "task_queues", "task_workers", "tasks"),
)
QUESTIONS = {
    "Client": {f"Client.{call}" for call in CLIENT},
    "Manager": {f"Manager.{call}" for call in STEPS},
    "Reader": {f"Reader.{call}" for call in (*STEPS, "next_checkpoint")},
}

BY = {
    **{call: ("each of wait.py", kind) for kind, calls in QUESTIONS.items() for call in calls},
    "Node": ("wait.py", "open"),
    "Node.step": ("wait.py", "step"),
    "Node.scope": ("wait.py", "scope"),
    "Node.restore": ("slow_disk.py", "node"),
    "Node.wait_until_saved": ("wait.py", "node"),
    "Node.close": ("wait.py", "leaves"),
    "Node.fail": ("wait.py", "suspects"),
    "Node.events": ("test_log.py", "events"),
    "Manager.restore": ("wait.py", "manager"),
    "Manager.save": ("wait.py", "saves"),
    "Manager.should_save": ("wait.py", "should_save"),
    "Manager.wait_until_finished": ("wait.py", "finished"),
    "Manager.delete": ("wait.py", "deletes"),
    "Manager.close": ("wait.py", "close"),
    "Reader": ("wait.py", "directory"),
    "Checkpoint.load": ("slow_disk.py", "read"),
    "Coordinator": ("coordinate.py", "open"),
    "Coordinator.schedule": ("coordinate.py", "full"),
    "Coordinator.per_worker": ("coordinate.py", "value"),
    "Coordinator.join": ("coordinate.py", "join"),
    "Coordinator.flush": ("coordinate.py", "flush"),
    "Coordinator.close": ("coordinate.py", "close"),
    "RemoteValue.fetch": ("coordinate.py", "fetch"),
    "Worker.serve": ("test_tasks.py", "serve"),
}

NOT = {
    "Client": "opening asks nobody",
    "Manager": "opening asks nobody; restore does",
    "Worker": "opening asks nobody; serve does",
    "Manager.fail": "it is Node.fail",
    "Manager.events": "it is Node.events",
    "Manager.check_for_errors": "it never waits",
    "Worker.close": "it waits for the program's own function, and says so",
}

# The same for the modules for frameworks.
ADAPTERS_BY = {
    "torch.init_process_group": ("wait_adapter.py", "torch_meets"),
    "torch.Checkpointer.restore": ("wait_adapter.py", "torch"),
    "jax.initialize": ("wait_adapter.py", "jax_meets"),
    "jax.PreemptionSync": ("wait_adapter.py", "jax"),
    "transformers.Muster.checkpoint": ("wait_adapter.py", "transformers"),
    "lightning.Muster.ckpt_path": ("wait_adapter.py", "lightning"),
    "testing.preempt": ("wait_adapter.py", "preempt"),
    "orbax.CheckpointManager": ("test_slow_orbax.py", "wait_agree.py"),
    "orbax.CheckpointManager.save": ("test_slow_orbax.py", "wait_adapter.py"),
}

ADAPTERS_NOT = {
    **dict.fromkeys(
        (
            *("torch.Checkpointer.close", "jax.PreemptionSync.close", "keras.BackupAndRestore.close"),
            *("lightning.Muster.close", "orbax.CheckpointManager.close", "transformers.Muster.close"),
        ),
        "it waits in Manager.close",
    ),
    "torch.Checkpointer.step": "it waits in Manager.should_save and Manager.save",
    "jax.PreemptionSync.saved": "it waits in Manager.should_save and Manager.save",
    "jax.PreemptionSync.reached": "it waits in Manager.should_save",
    "orbax.CheckpointManager.should_save": "it waits in Manager.should_save",
    "orbax.CheckpointManager.reached_preemption": "it waits in Manager.should_save",
}
