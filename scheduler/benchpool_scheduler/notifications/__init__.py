"""Notifications by mail, chat and webhook: their kinds, schedule and delivery.

``events`` is the table of notifications, ``job_messages`` and ``conditions`` derive them from the
facts, ``pace`` bundles them: pure. ``site`` and ``delivery_state`` read files, ``sending`` calls
other hosts. The service connects them (``service.administration.notifier``).
"""
