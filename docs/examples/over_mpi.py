"""Runs an MPI program over all workers of a gang, without SSH.

    benchpool submit --gpus 2 --workers 4 -- python3 over_mpi.py ./solver --input data.h5

Worker 0 calls Open MPI's ``mpirun``. Where mpirun would log in to another machine, it calls this
file again (``--start HOST COMMAND``), which hands the command to the worker that runs there: each
of the others has connected to worker 0 and waits for one. Who connects proves that it belongs to
the gang by ``BENCHPOOL_GANG_KEY``.
"""

import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time

KEY = os.environ["BENCHPOOL_GANG_KEY"].encode()
WORKERS = int(os.environ["NNODES"])
MINE = int(os.environ["NODE_RANK"])
PROCESSES = int(os.environ["NPROC_PER_NODE"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def host(index: int) -> str:
    """Return the name of a worker; the gang meets at that of worker 0."""
    first, _, rest = MASTER[0].partition(".")
    return f"{first.removesuffix('-0')}-{index}.{rest}"


def proof(nonce: str, role: str) -> str:
    """Return the answer to a nonce that only a member of the gang can compute."""
    return hmac.new(KEY, f"{role}:{nonce}".encode(), "sha256").hexdigest()


def send(connection: socket.socket, **words: object) -> None:
    """Send a line."""
    connection.sendall(json.dumps(words).encode() + b"\n")


def receive(connection: socket.socket) -> dict:
    """Receive a line. Errors: OSError when the other side is gone."""
    line = b""
    while not line.endswith(b"\n"):
        piece = connection.recv(1)
        if not piece:
            raise OSError("the other worker is gone")
        line += piece
    return json.loads(line)


def meet(role: str) -> socket.socket:
    """Connect to worker 0, waiting until it is there, and prove who we are."""
    while True:
        try:
            connection = socket.create_connection(MASTER, 10)
            break
        except OSError:
            time.sleep(0.5)
    connection.settimeout(None)
    send(connection, role=role, proof=proof(receive(connection)["nonce"], role))
    return connection


def lead(program: list) -> int:
    """Be worker 0: wait for the others, then run mpirun; they end with it."""
    waiting: dict = {}
    all_there = threading.Event()

    def serve(connection: socket.socket) -> None:
        nonce = secrets.token_hex()
        send(connection, nonce=nonce)
        message = receive(connection)
        if not hmac.compare_digest(str(message["proof"]), proof(nonce, str(message["role"]))):
            connection.close()
        elif message["role"] == "start":
            order = receive(connection)
            worker = waiting[order["host"]]
            send(worker, command=order["command"])
            send(connection, **receive(worker))
        else:
            waiting[host(int(message["role"]))] = connection
            if len(waiting) == WORKERS - 1:
                all_there.set()

    def accept(server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    server = socket.create_server(("", MASTER[1]))
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    if WORKERS > 1:
        all_there.wait()
    hosts = ",".join(f"{host(index)}:{PROCESSES}" for index in range(WORKERS))
    command = ["mpirun", "-np", str(WORKERS * PROCESSES), "--host", hosts]
    command += ["--mca", "orte_keep_fqdn_hostnames", "1"]
    command += ["--mca", "plm_rsh_agent", f"{sys.executable} {os.path.abspath(__file__)} --start"]
    status = subprocess.call([*command, *program])
    for connection in waiting.values():
        send(connection, command=None)
    return status


def follow() -> int:
    """Be another worker: run what worker 0 hands over, until it has ended."""
    connection = meet(str(MINE))
    while True:
        command = receive(connection)["command"]
        if command is None:
            return 0
        send(connection, status=subprocess.call(["sh", "-c", command]))


def start(words: list) -> int:
    """Be called by mpirun in place of ssh."""
    connection = meet("start")
    send(connection, host=words[0], command=" ".join(words[1:]))
    return int(receive(connection)["status"])


if __name__ == "__main__":
    if sys.argv[1] == "--start":
        sys.exit(start(sys.argv[2:]))
    sys.exit(lead(sys.argv[1:]) if MINE == 0 else follow())
