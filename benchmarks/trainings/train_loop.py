"""A training of torch by ``checkpoint.loop``: epochs, and in them shuffled batches."""

import report
import torch

from benchpool import checkpoint

torch.manual_seed(7)
data = torch.utils.data.TensorDataset(torch.randn(480, 20), torch.randn(480, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
).to(report.DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=report.EPOCHS * 60)
for _ in checkpoint.loop(
    range(report.EPOCHS), model=model, optimizer=optimizer, scheduler=scheduler
):
    for inputs, wanted in checkpoint.loop(loader):
        found = model(inputs.to(report.DEVICE))
        loss = torch.nn.functional.mse_loss(found, wanted.to(report.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        report.loss(scheduler.last_epoch, loss.item())
report.weights(model.parameters())
