"""Settings of the service, and what it was told by the runtime, the Hub and the last pass.

Door: ``observed.SchedulerState``.
"""
