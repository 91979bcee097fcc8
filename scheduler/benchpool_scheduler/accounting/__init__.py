"""Where every GPU-second went: each is in exactly one class. Pure: no clock, no database.

Door: ``division.divide`` gives the seconds of each interval of a recorded history to classes,
``totals.totals`` adds them up by whom they belong to.
"""
