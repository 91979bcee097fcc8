"""Parsers of the output of py-spy and ``faulthandler``, with the same plain data as result: pure.

>>> output = '''Thread 7 (idle): "MainThread"
...     wait (threading.py:320)
...     <module> (train.py:12)'''
>>> of_py_spy(output)
[('MainThread', ['wait (threading.py:320)', '<module> (train.py:12)'])]
>>> output = '''Current thread 0x00007f00 (most recent call first):
...   File "/usr/lib/python3.11/threading.py", line 320 in wait
...   File "train.py", line 12 in <module>'''
>>> of_faulthandler(output)
[('current', ['wait (threading.py:320)', '<module> (train.py:12)'])]
"""

from __future__ import annotations

import re

Threads = list[tuple[str, list[str]]]
"""A name for each thread, and its frames as ``function (file:line)``, the innermost first."""

MOST_THREADS, MOST_FRAMES, MOST_SIGNS = 64, 60, 300

_SPY_THREAD = re.compile(r'Thread \S+ \((?P<does>[^)]*)\)(?:: "(?P<name>.*)")?')
_SPY_FRAME = re.compile(r"\s+(?P<where>.+ \(.+:\d+\))")
_FAULT_THREAD = re.compile(
    r"(?P<which>Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>.*)\])?"
)
_FAULT_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.+)')


def of_py_spy(text: str) -> Threads:
    """Return the threads in the output of ``py-spy dump``."""
    found: Threads = []
    for line in text.splitlines():
        thread, frame = _SPY_THREAD.match(line), _SPY_FRAME.fullmatch(line)
        if thread is not None:
            found.append(((thread["name"] or thread["does"])[:MOST_SIGNS], []))
        elif frame is not None and found:
            _add(found, frame["where"])
    return _kept(found)


def of_faulthandler(text: str) -> Threads:
    """Return the threads in the output of ``faulthandler``."""
    found: Threads = []
    for line in text.splitlines():
        thread, frame = _FAULT_THREAD.match(line), _FAULT_FRAME.fullmatch(line)
        if thread is not None:
            usual = "current" if thread["which"] == "Current thread" else "thread"
            found.append(((thread["name"] or usual)[:MOST_SIGNS], []))
        elif frame is not None and found:
            file = frame["file"].rpartition("/")[2]
            _add(found, f"{frame['name']} ({file}:{frame['line']})")
    return _kept(found)


def _add(found: Threads, frame: str) -> None:
    if len(found[-1][1]) < MOST_FRAMES:
        found[-1][1].append(frame[:MOST_SIGNS])


def _kept(found: Threads) -> Threads:
    return [thread for thread in found if thread[1]][:MOST_THREADS]
