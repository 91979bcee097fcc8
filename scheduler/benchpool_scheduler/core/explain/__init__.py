"""Reasons why jobs wait, each one sentence with numbers and a remedy (R22).

Entry point: ``reasons.reasons_of``. ``sentences`` holds the wording.
"""
