"""A Keras model that may be preempted: muster run -n 2 -- python keras_fit.py

The lines that muster changes are marked. The result is the same bits, however often it is
preempted. KERAS_BACKEND is jax or torch.
"""

import keras
import numpy

from muster.keras import BackupAndRestore  # was: from keras.callbacks import BackupAndRestore


def make():
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((16,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    return model


def data():
    x = numpy.random.default_rng(1).normal(size=(640, 16)).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def train(model, backup_dir, callbacks=(), **options):
    backup = BackupAndRestore(backup_dir, **options)  # raises muster.Preempted out of fit
    x, y = data()
    return model.fit(x, y, epochs=5, batch_size=16, verbose=0, callbacks=[backup, *callbacks])


if __name__ == "__main__":
    train(make(), "keras_fit")
