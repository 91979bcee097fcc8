"""What administrators do: a new configuration, what-if questions, the recorded history.

Doors: ``reconfiguration.Reconfiguration``, ``whatifs.WhatIfs``, ``history.history``.
"""
