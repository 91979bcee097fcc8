"""Estimates of job starts, from learned run times and a simulation of the core (R22).

Entry points: ``forecast.forecast`` for estimates, ``run_times.RunTimes`` for run times.
"""
