"""Facts about jobs, attempts, preemptions and leases: durable in the store, indexed in memory.

Entry point: ``ledger.Ledger``. Changes to existing records go through a ``UnitOfWork``.
"""
