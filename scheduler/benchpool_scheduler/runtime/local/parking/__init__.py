"""Parking: CUDA state of idle kernels goes to host memory by the driver's checkpoint calls.

What is decided stands in ``core.benches.parking``; here is what does it on one machine. Doors:
``driver.CheckpointDriver`` (the port; ``libcuda_driver`` is the real one), ``steps.carry_on``,
``machine_facts``, ``trial``.
"""
