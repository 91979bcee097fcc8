"""Trainer of transformers with an evaluation after each epoch; it does not call benchpool."""

import os

import torch
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    """Network that returns its loss, like the models of transformers."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(20, 1)

    def forward(self, inputs=None, labels=None):
        out = self.net(inputs)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


data = [{"inputs": torch.randn(20), "labels": torch.randn(1)} for _ in range(80)]
arguments = TrainingArguments(
    os.environ["TRAINING_FOLDER"],
    num_train_epochs=2,
    per_device_train_batch_size=8,
    logging_steps=5,
    eval_strategy="epoch",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    save_strategy="no",
)
Trainer(Net(), arguments, train_dataset=data, eval_dataset=data[:8]).train()
