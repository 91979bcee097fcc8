"""Query of the kernel before cells are sent: its names, what they share, and what ran.

The query (``probe``) runs inside the user's kernel and changes nothing there. ``question`` wraps it
into one expression, and ``answer`` is the result. Callers are ``benchpool.server.kernel_answers``
over the wire, and ``%%train`` in its own kernel.
"""
