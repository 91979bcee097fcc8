"""What the kernel is asked before cells are sent: its names, what they share, and what ran.

The question (``probe``) runs inside the user's kernel and changes nothing there; ``question``
wraps it into one expression; ``answer`` is what comes back. Who asks is elsewhere:
``benchpool.server.kernel_answers`` over the wire, ``%%train`` in its own kernel.
"""
