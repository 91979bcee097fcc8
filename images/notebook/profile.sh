# Login shells reset PATH. Put the programs of the image first again.
PATH="/opt/benchpool/bin:$PATH"
