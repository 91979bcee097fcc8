"""Code offered to a training that saves nothing, in the names of its own loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from benchpool import checkpoint_detection, resume_offers

HUGGINGFACE = """\
from transformers import Trainer, TrainingArguments
mine = Trainer(net, TrainingArguments("out"), train_dataset=data)
outcome = mine.train(ignore_keys_for_eval=[])
"""
LIGHTNING = """\
import lightning as L
trainer = L.Trainer(max_epochs=3, callbacks=[EarlyStopping("loss")])
trainer.fit(net, loader, val_dataloaders=other)
"""
DATA_MODULE = "import pytorch_lightning as pl\nt = pl.Trainer()\nt.fit(net, datamodule=data)\n"
KERAS = """\
from tensorflow import keras
net = keras.Sequential(layers)
seen = net.fit(x, y, epochs=30, callbacks=mine)
"""
LOOP = """\
net = Net()
opt = torch.optim.Adam(net.parameters())
schedule = StepLR(opt, 2)
losses, best = [], 1e9
gathered = []
least = float("inf")
with open("log") as log:
    for epoch in range(10):
        for x, y in tqdm(loader):
            loss = mse(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            gathered.append(loss.item())
        schedule.step()
        least = min(least, loss)
"""
FUNCTION = """\
def learn(net, opt):
    for x in loader:
        mse(net(x)).backward()
        opt.step()

def main():
    net, opt = made()
    opt = SGD(net.parameters())
    seen = {}
    if True:
        for epoch in range(E):
            learn(net, opt)
            seen[epoch] = 1
"""


def whole(lines: Sequence[str]) -> str:
    """Return the offered code as a program, with a statement in the innermost loop."""
    last = [line for line in lines if not line.startswith("#")][-1]
    inside = " " * (len(last) - len(last.lstrip()) + 4) + "pass"
    return "\n".join([*lines, inside] if last.endswith(":") else lines)


@pytest.mark.parametrize(
    ("source", "offered"),
    [
        (
            HUGGINGFACE,
            [
                "from benchpool.checkpoint.huggingface import HuggingFacePauses, latest",
                "",
                "mine.add_callback(HuggingFacePauses())",
                "outcome = mine.train(ignore_keys_for_eval=[], resume_from_checkpoint=latest())",
            ],
        ),
        (
            LIGHTNING,
            [
                "from benchpool.checkpoint.lightning import LightningPauses",
                "",
                "saving = LightningPauses()",
                "trainer = L.Trainer(max_epochs=3, callbacks=[EarlyStopping('loss'), saving])",
                "trainer.fit(net, saving.resumable(loader), val_dataloaders=other, "
                "ckpt_path=saving.latest())",
            ],
        ),
        (
            DATA_MODULE,
            [
                "from benchpool.checkpoint.lightning import LightningPauses",
                "",
                "saving = LightningPauses()",
                "t = pl.Trainer(callbacks=[saving])",
                "t.fit(net, datamodule=data, ckpt_path=saving.latest())",
            ],
        ),
        (
            KERAS,
            [
                "from benchpool.checkpoint.keras import KerasPauses",
                "",
                "saving = KerasPauses()  # a pause within an epoch restarts that epoch",
                "seen = net.fit(x, y, epochs=30, callbacks=[*mine, saving], "
                "initial_epoch=saving.epoch)",
            ],
        ),
        (
            LOOP,
            [
                "from benchpool import checkpoint",
                "",
                "for epoch in checkpoint.loop(range(10), net=net, opt=opt, schedule=schedule, "
                "gathered=gathered):",
                "    for x, y in checkpoint.loop(tqdm(loader)):",
                "# least: reset after a pause; to keep values, pass a dict of them",
            ],
        ),
        (
            FUNCTION,
            [
                "from benchpool import checkpoint",
                "",
                "for epoch in checkpoint.loop(range(E), net=net, opt=opt, seen=seen):",
                "    for x in checkpoint.loop(loader):",
            ],
        ),
    ],
)
def test_offered_code_uses_names_of_loop(source: str, offered: Sequence[str]) -> None:
    found = checkpoint_detection.detect([source])
    assert found.lines.splitlines() == offered
    assert found.text.endswith("With these lines in place of its own, it resumes where it stopped:")
    written = whole(offered)
    ast.parse(written)
    assert checkpoint_detection.detect([written]).lines == "", "who has them is offered nothing"


def test_offer_spans_several_cells() -> None:
    first, second = LOOP.split("losses, best")
    found = checkpoint_detection.detect([first, f"losses, best{second}"])
    assert found.lines == checkpoint_detection.detect([LOOP]).lines


def test_unrecognised_saving_gets_no_offer() -> None:
    found = checkpoint_detection.detect(["fit(x)\njoblib.dump(model, 'm')"])
    assert found.found
    assert found.lines == ""


def test_loop_without_visible_changes_gets_general_code() -> None:
    found = checkpoint_detection.detect(["for out in outs:\n    out.backward()\n"])
    assert found.lines == resume_offers.ANY
