"""A training by the Trainer of transformers."""

import os

import report
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from benchpool.checkpoint.huggingface import HuggingFacePauses, latest


class Net(torch.nn.Module):
    """Network that returns its loss, like the models of transformers."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
        )

    def forward(self, inputs=None, labels=None):
        out = self.net(inputs)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class ProgressCallback(TrainerCallback):
    """Callback that prints each loss."""

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            report.loss(state.global_step, logs["loss"])


torch.manual_seed(7)
data = [{"inputs": torch.randn(20), "labels": torch.randn(1)} for _ in range(480)]
arguments = TrainingArguments(
    os.environ["TRAINING_FOLDER"],
    num_train_epochs=report.EPOCHS,
    per_device_train_batch_size=8,
    logging_steps=1,
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    save_strategy="no",
    seed=5,
)
trainer = Trainer(
    Net(), arguments, train_dataset=data, callbacks=[ProgressCallback(), HuggingFacePauses()]
)
trainer.train(resume_from_checkpoint=latest())
report.weights(trainer.model.parameters())
