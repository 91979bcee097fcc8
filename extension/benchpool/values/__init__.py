"""Values of Python as files, without pickle where that can be: what cells leave, and what they get.

A *document* is one JSON file, ``values.json``, and the files that it names beside it: plain data
stand in the JSON, arrays in ``.npy``, tensors in safetensors, frames in Arrow. One object that two
values hold stays one object. Pickles are written and read only where that was said.

``writing`` and ``reading`` are the doors; ``plain`` and ``formats`` know the kinds of values. This
package works on every Python from 3.9 and imports nothing but the standard library by itself: what
a value's own library is for, that library has been imported for.
"""
