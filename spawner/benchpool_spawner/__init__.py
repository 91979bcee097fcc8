"""JupyterHub spawners with a fixed quota of GPUs."""
