"""Settings of the service, and its observations of the runtime, the Hub and the last pass.

Entry point: ``observed.SchedulerState``.
"""
