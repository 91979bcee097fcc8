"""Python values as files, without pickle if possible: results of cells, and inputs of jobs.

A *document* is one JSON file, ``values.json``, with the files that it names beside it. Plain data
are in the JSON, arrays in ``.npy``, tensors in safetensors, frames in Arrow. An object shared by
two values stays one object. Pickles are written and read only if that was allowed.

Entry points: ``writing`` and ``reading``. ``plain`` and ``formats`` implement the kinds of values.
This package works on every Python from 3.9 and itself imports only the standard library. The
library of a value is already imported wherever the value exists.
"""
