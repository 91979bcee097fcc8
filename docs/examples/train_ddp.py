"""Data-parallel training with PyTorch on all GPUs of a gang; it may be paused at any step.

    benchpool submit --gpus 2 --workers 2 -- torchrun train_ddp.py 5000

The image needs PyTorch. On GPUs the processes talk by NCCL, without any by Gloo.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from benchpool import checkpoint

STEPS = int(sys.argv[1])
EVERY = 500
TRUTH = torch.linspace(-1, 1, 16).unsqueeze(0)


def batch(step: int, rank: int) -> tuple:
    """Return what this process learns from in a step: the same in every attempt."""
    random = torch.Generator().manual_seed(step * 1000 + rank)
    points = torch.randn(32, 16, generator=random)
    noise = torch.randn(32, 1, generator=random)
    return points, points @ TRUTH.T + noise


def train(device: torch.device) -> None:
    """Train from the last checkpoint on. Ends with SystemExit when the job is paused."""
    torch.manual_seed(0)
    rank = torch.distributed.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(16, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    start, saved = 0, checkpoint.latest()
    if saved is not None:
        state = torch.load(saved / "state.pt", map_location=device)
        start = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    print(f"rank {rank} of {torch.distributed.get_world_size()} begins at {start}", flush=True)

    for step in range(start + 1, STEPS + 1):
        points, values = (part.to(device) for part in batch(step, rank))
        loss = torch.nn.functional.mse_loss(model(points), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stop = checkpoint.should_stop()  # one answer on all ranks
        if stop or step % EVERY == 0:
            with checkpoint.commit(step) as folder:  # rank 0's counts
                kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({"step": step, **kept}, folder / "state.pt")
        if stop:
            raise SystemExit(75)  # anything but 0: paused, not finished
        if step % 50 == 0:
            checkpoint.progress(step / STEPS, f"loss {loss.item():.4f}")

    if rank == 0:
        weights = model.module.weight.detach().cpu()
        torch.save(weights, Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "weights.pt"))
        print("trained:", weights.tolist())


if __name__ == "__main__":
    gpus = torch.cuda.is_available()
    torch.distributed.init_process_group("nccl" if gpus else "gloo")
    mine = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(mine)
    train(mine)
    torch.distributed.destroy_process_group()
