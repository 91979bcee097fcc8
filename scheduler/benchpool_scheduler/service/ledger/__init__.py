"""All facts about jobs, attempts, preemptions and leases: durable in the store, indexed in memory.

Door: ``ledger.Ledger``; changes to what exists go through a ``UnitOfWork``.
"""
