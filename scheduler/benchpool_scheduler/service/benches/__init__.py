"""Build GPUs: quotas, the reserve for benches, leases and the bench queue (R2, R3).

Entry point: ``reservations.Leases``. ``bench_reserve`` returns how many GPUs training must leave
free.
"""
