"""A training by ``fit`` of Keras."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import report

from benchpool.checkpoint.keras import KerasPauses

keras.utils.set_random_seed(7)
x, y = np.random.randn(480, 20).astype("f"), np.random.randn(480, 1).astype("f")
model = keras.Sequential(
    [
        keras.layers.Input((20,)),
        keras.layers.Dense(64, "relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")


class ProgressCallback(keras.callbacks.Callback):
    """Callback that prints the mean loss of the epoch so far after each batch."""

    def on_epoch_begin(self, epoch, logs=None):
        self.before = epoch * 60

    def on_train_batch_end(self, batch, logs=None):
        report.loss(self.before + batch + 1, logs["loss"])


saving = KerasPauses()
model.fit(
    x,
    y,
    batch_size=8,
    epochs=report.EPOCHS,
    verbose=0,
    callbacks=[ProgressCallback(), saving],
    initial_epoch=saving.epoch,
)
report.weights(model.get_weights())
