"""The example of Keras, slowly until its first preemption.

train_keras.py OUTPUT SECONDS [OPTIONS OF BackupAndRestore, AS JSON]
"""

import hashlib
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "client/python/examples"))
import ends
import keras
import keras_fit
import numpy

output, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
options = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}


class Slow(keras.callbacks.Callback):
    """Behind muster's: it is slow also where batches are left out."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(seconds if os.environ["MUSTER_RESTART_COUNT"] == "0" else 0)


model = keras_fit.make()
numpy.random.seed(100 + int(os.environ["RANK"]))  # each rank has its own order of the data
with ends.told():
    history = keras_fit.train(model, output / "backup", callbacks=[Slow()], **options)
print("first epoch", history.epoch[0] if history.epoch else None, flush=True)
digest = hashlib.sha256()
for variable in [*model.variables, *model.optimizer.variables]:
    digest.update(keras.ops.convert_to_numpy(variable.value).tobytes())
(output / "digests").mkdir(parents=True, exist_ok=True)
(output / "digests" / os.environ["RANK"]).write_text(
    f"{digest.hexdigest()} {history.history['loss'][-1]!r}"
)
