"""The rules of the pool worked out a second time, plainly, to check the core against.

Nothing here uses the core but its data (``core.model``): holdings are summed from the jobs, shares
come from filling vessels with exact fractions, places and victims from trying all of them. It is
slow and made for tiny pools.
"""
