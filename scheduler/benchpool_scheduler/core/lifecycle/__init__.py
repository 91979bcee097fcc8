"""The life of a job: the tables of states, events and intents, and what applies them.

Door: ``machine.apply``; ``states`` has the tables.
"""
