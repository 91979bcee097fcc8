"""Holdings, fair shares and scheduling order (R4-R8, R11).

Entry points: ``ledger`` for holdings and limits, ``shares.fair_shares`` for fair shares, and
``scheduling_queue`` for the order.
"""
