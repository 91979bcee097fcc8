"""Job lifecycle: tables of states, events and intents, and functions that apply them.

Entry point: ``machine.apply``. ``states`` holds the tables.
"""
