"""``benchpool mcp``: the pool for programs with a language model, by the Model Context Protocol.

``tools`` reads from the table of operations what is offered and in which words; ``serving`` speaks
the protocol on standard input and output. It is a client like the command line: it has the rights
of the token that it is started with, and no other.
"""
