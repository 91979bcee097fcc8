"""Trainer of Lightning with a validation after each epoch; it does not call benchpool."""

import os

import lightning
import torch


class Net(lightning.LightningModule):
    """Network that logs its losses."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(20, 1)

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 3e-3)


data = torch.utils.data.TensorDataset(torch.randn(80, 20), torch.randn(80, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = lightning.Trainer(
    max_epochs=2,
    default_root_dir=os.environ["TRAINING_FOLDER"],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(Net(), loader, loader)
