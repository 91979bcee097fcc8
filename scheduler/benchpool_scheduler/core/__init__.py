"""The decision core: a snapshot goes in, a plan with commands and reasons comes out.

Nothing here acts: no clock, randomness, threads, logging or I/O. See ``model`` for what goes in
and out, ``plan`` for one pass, ``states`` for the life of a job.
"""
