"""A training of torch on two processes by DistributedDataParallel and ``checkpoint.loop``.

Each has its own dropout; the reported loss is the sum of both.
"""

import os
import socket
import subprocess
import sys

import report
import torch
import torch.distributed as dist

from benchpool import checkpoint

RANKS = 2


def launch() -> int:
    """Run this file once for each rank; return the first exit status that is not 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS)}
    ranks = [
        subprocess.Popen([sys.executable, __file__], env={**os.environ, **world, "RANK": str(rank)})
        for rank in range(RANKS)
    ]
    return next((status for status in [each.wait() for each in ranks] if status), 0)


def train() -> None:
    """Train one rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    data = torch.utils.data.TensorDataset(torch.randn(960, 20), torch.randn(960, 1))
    sampler = torch.utils.data.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
    net = torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1)
    )
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(rank)
    for epoch in checkpoint.loop(range(report.EPOCHS), model=model, optimizer=optimizer):
        sampler.set_epoch(epoch)
        for inputs, wanted in checkpoint.loop(loader):
            loss = torch.nn.functional.mse_loss(model(inputs), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            both = loss.detach().clone()
            dist.all_reduce(both)
            if rank == 0:
                report.loss(int(optimizer.state_dict()["state"][0]["step"]), both.item())
    if rank == 0:
        report.weights(model.parameters())
    dist.destroy_process_group()


if "RANK" in os.environ:
    train()
else:
    sys.exit(launch())
