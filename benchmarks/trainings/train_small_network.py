"""A small network in NumPy, trained as a trial of a sweep: two layers, momentum, weight decay.

It classifies points of ten dimensions by the sign of a fixed random network of three layers; every
tenth label is wrong. After each epoch it reports the loss on other points, as ``val_loss``, and the
smallest one so far, as ``best_loss``. The options are those of a sweep: learning rate, width,
weight decay, momentum and batch size.
"""

import argparse
import math
import time

import numpy as np

from benchpool import checkpoint, log

POINTS, INPUTS = 2000, 10


def labelled(rng, teacher, count):
    """Return random points with their labels, a tenth of which is wrong."""
    points = rng.normal(size=(count, INPUTS))
    hidden = points
    for weights in teacher[:-1]:
        hidden = np.tanh(hidden @ weights)
    values = hidden @ teacher[-1]
    wrong = rng.random((count, 1)) < 0.1
    return points, ((values > np.median(values)) ^ wrong).astype(float)


def forward(model, points):
    """Return the hidden layer and the logits."""
    hidden = np.maximum(points @ model["w1"] + model["b1"], 0.0)
    return hidden, hidden @ model["w2"] + model["b2"]


def loss_of(model, points, labels):
    """Return the mean cross entropy in nats."""
    logits = forward(model, points)[1]
    return float(np.mean(np.logaddexp(0.0, logits) - labels * logits))


def gradients(model, points, labels):
    """Return the gradient of the mean cross entropy by name."""
    hidden, logits = forward(model, points)
    error = (0.5 * (1.0 + np.tanh(0.5 * logits)) - labels) / len(points)
    back = (error @ model["w2"].T) * (hidden > 0)
    return {
        "w1": points.T @ back,
        "b1": back.sum(0),
        "w2": hidden.T @ error,
        "b2": error.sum(0),
    }


def initial(rng, width):
    """Return random weights."""
    return {
        "w1": rng.normal(size=(INPUTS, width)) * (2 / INPUTS) ** 0.5,
        "b1": np.zeros(width),
        "w2": rng.normal(size=(width, 1)) * (1 / width) ** 0.5,
        "b2": np.zeros(1),
    }


def improve(model, speed, points, labels, chosen, rng):
    """Train for one epoch."""
    order = rng.permutation(len(points))
    for start in range(0, len(points), chosen.batch):
        batch = order[start : start + chosen.batch]
        for name, slope in gradients(model, points[batch], labels[batch]).items():
            slope = slope + chosen.decay * model[name]
            speed[name] = chosen.momentum * speed[name] - chosen.lr * slope
            model[name] = model[name] + speed[name]


def main():
    """Train and report."""
    options = argparse.ArgumentParser()
    options.add_argument("--lr", type=float, default=0.1)
    options.add_argument("--width", type=int, default=64)
    options.add_argument("--decay", type=float, default=1e-4)
    options.add_argument("--momentum", type=float, default=0.9)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--epochs", type=int, default=81)
    options.add_argument("--epoch-s", type=float, default=0.0, help="least time of an epoch")
    options.add_argument("--data", type=int, default=0, help="seed of the data")
    chosen = options.parse_args()
    np.seterr(all="ignore")  # some trials diverge
    rng = np.random.default_rng(chosen.data)
    teacher = [rng.normal(size=size) for size in ((INPUTS, 20), (20, 20), (20, 1))]
    points, labels = labelled(rng, teacher, POINTS)
    others = labelled(rng, teacher, POINTS)
    rng = np.random.default_rng(1)
    model = initial(rng, chosen.width)
    speed = {name: np.zeros_like(weights) for name, weights in model.items()}
    state = {"model": model, "speed": speed, "best": {"loss": math.inf}}
    for epoch in checkpoint.loop(range(chosen.epochs), **state):
        began = time.monotonic()
        improve(model, speed, points, labels, chosen, rng)
        loss = loss_of(model, *others)
        state["best"]["loss"] = min(state["best"]["loss"], loss)  # NaN changes nothing
        log(val_loss=loss, best_loss=state["best"]["loss"], step=epoch + 1)
        time.sleep(max(0.0, began + chosen.epoch_s - time.monotonic()))


if __name__ == "__main__":
    main()
