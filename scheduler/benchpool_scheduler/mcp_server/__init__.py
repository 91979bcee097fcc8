"""``benchpool mcp``: the pool for programs with a language model, by the Model Context Protocol.

``tools`` builds the tools and their descriptions from the table of operations. ``serving``
implements the protocol on standard input and output. It is a client like the command line, with
exactly the rights of its token.
"""
