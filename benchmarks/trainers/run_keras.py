"""``fit`` of Keras with a validation after each epoch; it does not call benchpool."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

x, y = np.random.randn(80, 20).astype("f"), np.random.randn(80, 1).astype("f")
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x[:8], y[:8]))
