"""Verbs of one machine: start, stop and inspect it, and run the decision core on files.

Their implementations are imported when called, so that the other verbs start quickly.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchpool_scheduler.cli.replay_verb import REPLAY
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.client import folder_of_running, state_folder

if TYPE_CHECKING:
    from benchpool_scheduler.workstation.options import UpOptions


def _up(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import up
    from benchpool_scheduler.workstation.options import UpOptions

    given = UpOptions(
        state=_state(session, options),
        port=options["port"],
        bind=options["bind"],
        config=options["config"],
        gpus=options["gpus"],
        gpu_model=options["gpu_model"],
        backups=options["backups"],
        sample_s=options["measure_every"],
        auth=options["auth"],
        tls=options["tls"],
        tls_cert=options["tls_cert"],
        tls_key=options["tls_key"],
        public_host=options["public_host"],
        subdomains=options["subdomains"],
        insecure=options["insecure"],
        trusted_proxies=tuple(options["trusted_proxy"]),
        hidden_cookies=tuple(options["hide_cookie"]),
        sandbox=options["sandbox"],
        server_sandbox=options["server_sandbox"],
        server_memory=options["server_memory"],
        server_cpus=options["server_cpus"],
        json=session.screen.json,
    )
    return _install(session, options["install"], given) if options["install"] else up.run(given)


def _install(session: Session, kind: str, given: UpOptions) -> int:
    """Write the unit that starts benchpool with these options, and print the next command."""
    from benchpool_scheduler.workstation import options, units

    options.check(given)
    if kind == "auto":
        kind = "system" if os.geteuid() == 0 else "user"
    unit = units.unit("system" if kind == "system" else "user", given, session.environ)
    units.install(unit)
    if session.screen.json:
        session.screen.value({"unit": str(unit.path), "next": list(unit.advice)})
        return 0
    session.screen.heading(f"{unit.path} is written.")
    if not units.BOOTED.exists():
        session.screen.line("systemd does not run this machine, so nothing starts it here.")
    session.screen.line("Next:")
    for line in unit.advice:
        session.screen.line(f"  {line}")
    return 0


def _down(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import down
    from benchpool_scheduler.workstation.options import DownOptions

    given = DownOptions(
        state=_running(session, options),
        jobs=options["jobs"],
        servers=options["servers"],
        json=session.screen.json,
    )
    return down.run(given)


def _backup(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import restoring

    made = session.client.backup()
    restoring.take(made, options["to"])
    for sentence in made.missing:
        session.screen.aside(f"benchpool: {sentence}")
    if options["to"] != "-":
        if session.screen.json:
            session.screen.value(made)
        else:
            inside = restoring.summary(made.files)
            session.screen.line(f"Copied to {options['to']}: {inside}.")
    return 1 if made.missing else 0


def _restore(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import restoring

    done = restoring.restore(_state(session, options), options["copy"])
    if session.screen.json:
        session.screen.value(done)
        return 0
    for sentence in done:
        session.screen.line(sentence)
    session.screen.line(
        "Start benchpool again; `benchpool adopt` lists jobs that run and are not in the copy."
    )
    return 0


def _doctor(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import doctor
    from benchpool_scheduler.workstation.options import DoctorOptions

    asked = DoctorOptions(
        _state(session, options), session.screen.json, try_parking=options["try_parking"]
    )
    return doctor.run(asked)


def _login_link(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import login_keys

    link = login_keys.for_running(_running(session, options), options["user"])
    if session.screen.json:
        session.screen.value({"login_url": link})
    else:
        session.screen.line(link)
    return 0


def _rotate(session: Session, options: Options) -> int:
    from benchpool_scheduler.workstation import admin_token

    file = admin_token.rotate_running(_running(session, options))
    if session.screen.json:
        session.screen.value({"token_file": str(file)})
    else:
        session.screen.line(f"A new token is in {file}; those before are good no longer.")
    return 0


def _simulate(session: Session, options: Options) -> int:
    from benchpool_scheduler import simulation

    files = [Path(name) for name in options["files"]]
    if options["shares"]:
        return simulation.run_shares(files, json=session.screen.json)
    return simulation.run(
        files, case=options["case"], json=session.screen.json, explain=options["explain"]
    )


def _bench(session: Session, options: Options) -> int:
    if options["shape"] == "admissions":
        from benchpool_scheduler import admissions

        return admissions.run(
            options["mix"], options["clock"], options["policy"], json=session.screen.json
        )
    from benchpool_scheduler.simulation import shapes

    return shapes.run_shape(options["shape"], nodes=options["nodes"], json=session.screen.json)


def _running(session: Session, options: Options) -> Path:
    """Return the state folder of the running benchpool, even if it is not the default."""
    return folder_of_running(session.environ, options["state"])


def _state(session: Session, options: Options) -> Path:
    return options["state"] or state_folder(session.environ)


_STATE = option(
    "--state",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Everything it keeps: database, logs, homes, snapshots; the user's state folder.",
)

_SHAPES = ("fill", "cycle", "event", "drain", "swap", "blocked", "gang", "admissions")

MACHINE_VERBS: tuple[Verb, ...] = (
    Verb(("up",), "Start JupyterHub, scheduler and pool on this machine.", _up,
         (_STATE,
          option("--port", type=int, default=8000, metavar="N",
                 help="Where the browser goes; 0 takes any free port."),
          option("--bind", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on."),
          option("--config", type=click.Path(path_type=Path), metavar="FILE",
                 help="benchpool.yaml; one is written on the first start."),
          option("--gpus", type=int, metavar="N",
                 help="Simulated GPUs instead of this machine's; 8 where there are none."),
          option("--gpu-model", metavar="NAME", help="Model of simulated GPUs."),
          option("--measure-every", type=float, default=10.0, metavar="SECONDS",
                 help="How often the use of GPUs, processors and memory is measured; 0 for never."),
          option("--backups", type=int, default=7, metavar="N",
                 help="How many daily copies of the databases are kept; 0 makes none."),
          option("--auth", type=click.Choice(["one-time", "shared-password", "pam"]),
                 default="one-time", help="Who may log in."),
          option("--tls", type=click.Choice(["self-signed"]),
                 help="Encrypt with a certificate that is made in the state folder."),
          option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE",
                 help="Encrypt with this certificate (PEM), its chain after it."),
          option("--tls-key", type=click.Path(path_type=Path), metavar="FILE",
                 help="The key of --tls-cert (PEM), without a password."),
          option("--public-host", metavar="NAME",
                 help="The name under which browsers come; the address of --bind."),
          option("--subdomains", is_flag=True,
                 help="Each user's servers at a name of their own below --public-host."),
          option("--insecure", is_flag=True,
                 help="Listen elsewhere than on loopback without encryption."),
          option("--trusted-proxy", multiple=True, metavar="ADDRESS",
                 help="A proxy before this one, by address or network, whose word on who asks "
                      "counts; may be given several times."),
          option("--hide-cookie", multiple=True, metavar="NAME",
                 help="A cookie of such a proxy that no served program sees; may be given several "
                      "times."),
          option("--sandbox", type=click.Choice(["auto", "full", "off"]), default="auto",
                 help="How jobs are kept from each other; full gives each job a /tmp of its own "
                      "also where all run under one account."),
          option("--server-sandbox", type=click.Choice(["auto", "full", "off"]), default="auto",
                 help="How notebook servers are kept from each other; full gives each a /tmp of "
                      "its own, and no rights by sudo, also where all run under one account."),
          option("--server-memory", type=float, metavar="GIB",
                 help="Memory that each notebook server may take; no bound by default."),
          option("--server-cpus", type=float, metavar="N",
                 help="Processor cores that each notebook server may take; no bound by default."),
          option("--install", type=click.Choice(["auto", "system", "user"]), is_flag=False,
                 flag_value="auto",
                 help="Write a systemd unit that starts it so, and start nothing: of the system "
                      "for root, else of the user.")),
         "Ctrl-C stops the hub; jobs and notebook servers run on, and the next start finds them.",
         remote=False),
    Verb(("down",), "End a running `benchpool up`.", _down,
         (_STATE,
          option("--jobs", type=click.Choice(["keep", "pause", "cancel"]), default="keep",
                 help="What becomes of running jobs."),
          option("--servers", type=click.Choice(["keep", "stop"]), default="keep",
                 help="What becomes of notebook servers.")), remote=False),
    Verb(("backup",), "Copy databases, configuration and audit trail while it runs.", _backup,
         (argument("to", metavar="DIR|-"),),
         "DIR is a new folder; - writes a tar file to standard output. Run it on the machine of "
         "the service. Files of jobs and homes are not in it."),
    Verb(("restore",), "Put back what `benchpool backup` copied, while benchpool does not run.",
         _restore,
         (argument("copy", metavar="DIR|FILE|-"), _STATE),
         "What is replaced stays beside it under another name.", remote=False),
    Verb(("doctor",), "Say what was found on this machine and what is degraded.", _doctor,
         (_STATE,
          option("--try-parking", is_flag=True,
                 help="Only try, with a tiny process on a free GPU, whether CUDA state goes to "
                      "host memory and comes back (experimental).")),
         remote=False),
    Verb(("login-link",), "Print a one-time link to log in to a running `benchpool up`.",
         _login_link, (_STATE, option("--user", help="Whom it logs in; you by default.")),
         remote=False),
    Verb(("token", "rotate"), "Exchange the administrator's token of a running `benchpool up`.",
         _rotate, (_STATE,),
         "Programs find the new one in the file that is named; the one before ends within 5 s.",
         remote=False),
    Verb(("simulate",), "Run the decision core over cases in files.", _simulate,
         (argument("files", metavar="FILE...", nargs=-1, required=True,
                   type=click.Path(dir_okay=False)),
          option("--case", metavar="NAME", help="Only this case."),
          option("--explain", is_flag=True, help="Add the reason of every waiting job."),
          option("--shares", is_flag=True, help="The files hold share divisions.")),
         "Exit status: 0 all hold, 1 some case failed, 2 unusable input.", remote=False),
    Verb(("bench",), "Time the decision core, or with `admissions` the whole service.", _bench,
         (argument("shape", metavar="SHAPE", type=click.Choice(_SHAPES)),
          option("--nodes", type=click.IntRange(1), metavar="N",
                 help="Size of a shape; each has its own default."),
          option("--mix", type=click.Choice(["baseline", "large"]), default="baseline",
                 help="Of admissions: 15,000 or 50,000 jobs."),
          option("--clock", type=click.Choice(["real", "virtual"]), default="virtual",
                 help="Of admissions: wait for each event, or let the time jump to it."),
          option("--policy", type=click.Choice(["eager", "protected"]), default="eager",
                 help="Of admissions: evict whenever it is allowed, or let run who has started.")),
         "Exit status: 0 when the plan is what the shape must come to, else 1.", remote=False),
    REPLAY,
)  # fmt: skip
