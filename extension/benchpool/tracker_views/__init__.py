"""TensorBoard and Trackio in a notebook server, for its user alone, where they are installed.

``jupyter-server-proxy`` starts them on demand behind the notebook server, whose login is the Hub's.
Each listens on a socket in a folder of its user's: a port of the machine would be everybody's.
"""
