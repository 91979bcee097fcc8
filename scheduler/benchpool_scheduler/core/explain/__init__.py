"""Why a job waits, in one sentence with numbers and a remedy (R22).

Door: ``reasons.reasons_of``; ``sentences`` has the words.
"""
