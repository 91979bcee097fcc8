"""The same random examples on every machine; `make soak` draws new ones."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("soak", deadline=None, database=None, print_blob=True)
settings.load_profile("repeatable")
