"""A training of torch that saves model, optimizer, schedule and step by hand.

It follows "Without the loop" of docs/howto/checkpoint.md. Random states are not saved, so it
continues with other numbers than a training without pauses.
"""

import report
import torch

from benchpool import checkpoint

torch.manual_seed(7)
data = torch.utils.data.TensorDataset(torch.randn(480, 20), torch.randn(480, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=report.EPOCHS * 60)
parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}

start, saved = 0, checkpoint.latest()
if saved is not None:
    state = torch.load(saved / "state.pt")
    start = state.pop("step")
    for name, each in state.items():
        parts[name].load_state_dict(each)

batches = iter(loader)
for step in range(start, report.EPOCHS * len(loader)):
    try:
        inputs, wanted = next(batches)
    except StopIteration:
        batches = iter(loader)
        inputs, wanted = next(batches)
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    report.loss(step + 1, loss.item())
    if step % 100 == 0 or checkpoint.should_stop():
        with checkpoint.commit(step + 1) as folder:
            state = {name: each.state_dict() for name, each in parts.items()}
            torch.save({**state, "step": step + 1}, folder / "state.pt")
    if checkpoint.should_stop():
        raise SystemExit(75)
report.weights(model.parameters())
