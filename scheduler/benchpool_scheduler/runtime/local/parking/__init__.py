"""Parking: moving the CUDA state of idle kernels to host memory by the driver's checkpoint calls.

``core.benches.parking`` decides, and this package acts on one machine. Entry points:
``driver.CheckpointDriver`` (the port; ``libcuda_driver`` implements it), ``steps.carry_on``,
``machine_facts``, ``trial``.
"""
