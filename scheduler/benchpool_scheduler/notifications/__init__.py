"""Messages by mail, chat and webhook: which there are, when they go, and how they are sent.

``events`` says what people can be told, ``job_messages`` and ``conditions`` find it in the facts,
``pace`` bundles it: pure. ``site`` and ``kept`` read files, ``sending`` calls other hosts. The
service puts them together (``service.administration.notifier``).
"""
