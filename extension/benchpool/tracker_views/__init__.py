"""TensorBoard and Trackio in a notebook server, only for its user, if they are installed.

``jupyter-server-proxy`` starts them on demand behind the notebook server and its Hub login. Each
listens on a socket in a folder of its user, since any user of the machine could open a port.
"""
