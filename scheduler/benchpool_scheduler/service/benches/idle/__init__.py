"""Idle benches: observations, idle state and release.

Entry point: ``verbs.IdleBenchVerbs``. The rules are the tables of ``core.benches.idle`` and
``core.benches.giving_back``.
"""
