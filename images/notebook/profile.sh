# Login shells set their PATH anew: what the image brings comes first again.
PATH="/opt/benchpool/bin:$PATH"
