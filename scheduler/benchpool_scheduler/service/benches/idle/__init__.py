"""Idle benches: what is seen of them, where they stand, and how they are given back.

Door: ``verbs.IdleBenchVerbs``. The rules are the tables of ``core.benches.idle`` and
``core.benches.giving_back``.
"""
