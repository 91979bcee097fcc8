"""A second, plain implementation of the rules of the pool, to check the core against.

It uses only the core's data (``core.model``). Holdings are summed from the jobs. Shares result from
filling vessels with exact fractions. Places and victims are found by trying all of them. The
implementation is slow and made for tiny pools.
"""
