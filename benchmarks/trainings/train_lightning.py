"""A training by the Trainer of Lightning."""

import lightning
import report
import torch

from benchpool.checkpoint.lightning import LightningPauses


class Net(lightning.LightningModule):
    """Network with dropout, Adam and a schedule of learning rates by epochs."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
        )

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        report.loss(self.trainer.global_step + 1, loss.item())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 3e-3)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


torch.manual_seed(7)
data = torch.utils.data.TensorDataset(torch.randn(480, 20), torch.randn(480, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net, saving = Net(), LightningPauses()
trainer = lightning.Trainer(
    max_epochs=report.EPOCHS,
    callbacks=[saving],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(net, saving.resumable(loader), ckpt_path=saving.latest())
report.weights(net.parameters())
