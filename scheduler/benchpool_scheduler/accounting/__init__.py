"""Division of all GPU-seconds, each into exactly one class. Pure: no clock, no database.

Entry points: ``division.divide`` assigns the seconds of each interval of a recorded history to
classes, ``totals.totals`` adds them up by owner.
"""
