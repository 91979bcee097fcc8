"""When waiting jobs will start: learned run times, and the core run forward (R22).

Door: ``forecast.forecast``; ``run_times.RunTimes`` learns.
"""
