"""Who holds what, who deserves what, and whose turn it is (R4-R8, R11).

Door: ``ledger`` for holdings and limits, ``shares.fair_shares`` for what is deserved, and
``scheduling_queue`` for the order.
"""
