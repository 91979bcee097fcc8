"""Builders and stand-ins for tests; product code never imports them."""
