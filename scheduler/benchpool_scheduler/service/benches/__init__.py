"""Build GPUs: quotas, the reserve that is kept for them, leases and the line for them (R2, R3).

Door: ``reservations.Leases``; ``bench_reserve`` says how many GPUs training must leave.
"""
