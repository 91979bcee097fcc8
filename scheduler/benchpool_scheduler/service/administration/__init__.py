"""Functions for administrators: configuration changes, what-if questions, recorded history.

Entry points: ``reconfiguration.Reconfiguration``, ``whatifs.WhatIfs``, ``history.history``.
"""
