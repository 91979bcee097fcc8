"""A training of torch by ``checkpoint.loop`` with a sampler that draws from its own generator."""

import report
import torch

from benchpool import checkpoint

torch.manual_seed(7)
data = torch.utils.data.TensorDataset(torch.randn(480, 20), torch.randn(480, 1))
sampler = torch.utils.data.RandomSampler(data, generator=torch.Generator().manual_seed(3))
loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Sequential(
    torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=report.EPOCHS * 60)
for _ in checkpoint.loop(
    range(report.EPOCHS), model=model, optimizer=optimizer, scheduler=scheduler, sampler=sampler
):
    for inputs, wanted in checkpoint.loop(loader):
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        report.loss(scheduler.last_epoch, loss.item())
report.weights(model.parameters())
