"""Who gives way, so that a rightful claimant starts (R3, R15-R19).

Door: ``victims`` for room that others hold, ``consolidation`` for room that is made by moving, and
``benches`` for what benches get back; ``reprieve`` ends a pass.
"""
