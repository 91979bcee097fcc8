"""benchpool in kernels whose Python lacks it, such as those of a conda environment.

The notebook server gives its kernels a file with this package (``server.kernel_package``) and the
path of its own Python. A request goes to a process of that Python: ``requests`` handles it with the
modules that other kernels use directly. The modules on the kernel's side work on every Python from
3.9, with its standard library: ``link``, ``magics``, ``functions`` and ``jobs``.
"""
