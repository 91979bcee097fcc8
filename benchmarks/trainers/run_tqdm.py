"""Loop that shows its loss beside a bar of tqdm; it does not call benchpool."""

from tqdm.auto import tqdm

with tqdm(range(20)) as bar:
    for step in bar:
        bar.set_postfix(loss=f"{1 / (step + 1):.3f}", device="cpu")
