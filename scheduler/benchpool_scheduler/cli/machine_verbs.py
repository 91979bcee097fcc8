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
        session.screen.line("systemd does not run this machine, so the unit cannot start here.")
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
        "Start benchpool again. `benchpool adopt` lists running jobs that are not in the copy."
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
        session.screen.line(f"The new token is in {file}. Earlier tokens are no longer valid.")
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
    help="Folder of database, logs, homes and snapshots; by default the user's state folder.",
)

SHAPES = ("fill", "cycle", "event", "drain", "swap", "blocked", "gang", "admissions")
"""What ``benchpool bench time`` can time."""

MACHINE_VERBS: tuple[Verb, ...] = (
    Verb(("up",), "Start JupyterHub, scheduler and pool on this machine.", _up,
         (_STATE,
          option("--port", type=int, default=8000, metavar="N",
                 help="Port for browsers; 0 takes any free port."),
          option("--bind", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on."),
          option("--config", type=click.Path(path_type=Path), metavar="FILE",
                 help="benchpool.yaml; one is written on the first start."),
          option("--gpus", type=int, metavar="N",
                 help="Number of simulated GPUs, instead of this machine's; 8 if it has none."),
          option("--gpu-model", metavar="NAME", help="Model of simulated GPUs."),
          option("--measure-every", type=float, default=10.0, metavar="SECONDS",
                 help="Interval of measuring GPUs, processors and memory; 0 for never."),
          option("--backups", type=int, default=7, metavar="N",
                 help="Number of daily copies of the databases to keep; 0 for none."),
          option("--auth", type=click.Choice(["one-time", "shared-password", "pam"]),
                 default="one-time", help="Login method."),
          option("--tls", type=click.Choice(["self-signed"]),
                 help="Encrypt with a certificate that is created in the state folder."),
          option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE",
                 help="Encrypt with this certificate (PEM), followed by its chain."),
          option("--tls-key", type=click.Path(path_type=Path), metavar="FILE",
                 help="Key of --tls-cert (PEM), without a password."),
          option("--public-host", metavar="NAME",
                 help="Host name that browsers use; by default the address of --bind."),
          option("--subdomains", is_flag=True,
                 help="Give each user's servers a host name of their own below --public-host."),
          option("--insecure", is_flag=True,
                 help="Allow listening beyond loopback without encryption."),
          option("--trusted-proxy", multiple=True, metavar="ADDRESS",
                 help="Address or network of a proxy before this one whose forwarded client "
                      "addresses are trusted; may be given several times."),
          option("--hide-cookie", multiple=True, metavar="NAME",
                 help="Cookie of such a proxy to hide from served programs; may be given several "
                      "times."),
          option("--sandbox", type=click.Choice(["auto", "full", "off"]), default="auto",
                 help="Isolation of jobs; full gives each job its own /tmp, even if all run "
                      "under one account."),
          option("--server-sandbox", type=click.Choice(["auto", "full", "off"]), default="auto",
                 help="Isolation of notebook servers; full gives each its own /tmp and no sudo "
                      "rights, even if all run under one account."),
          option("--server-memory", type=float, metavar="GIB",
                 help="Memory limit of each notebook server; no limit by default."),
          option("--server-cpus", type=float, metavar="N",
                 help="Limit of processor cores of each notebook server; no limit by default."),
          option("--install", type=click.Choice(["auto", "system", "user"]), is_flag=False,
                 flag_value="auto",
                 help="Write a systemd unit with these options, and start nothing; auto is system "
                      "for root, else user.")),
         "Ctrl-C stops the Hub. Jobs and notebook servers keep running; the next start finds them.",
         remote=False),
    Verb(("down",), "Stop a running `benchpool up`.", _down,
         (_STATE,
          option("--jobs", type=click.Choice(["keep", "pause", "cancel"]), default="keep",
                 help="What to do with running jobs."),
          option("--servers", type=click.Choice(["keep", "stop"]), default="keep",
                 help="What to do with notebook servers.")), remote=False),
    Verb(("backup",), "Copy databases, configuration and audit trail of a running pool.", _backup,
         (argument("to", metavar="DIR|-"),),
         "DIR is a new folder; - writes a tar file to standard output. Run it on the machine of "
         "the service. Files of jobs and homes are not included."),
    Verb(("restore",), "Restore a copy of `benchpool backup` while benchpool is stopped.",
         _restore,
         (argument("copy", metavar="DIR|FILE|-"), _STATE),
         "Replaced files stay beside the restored ones under another name.", remote=False),
    Verb(("doctor",), "Show what was found on this machine and what is degraded.", _doctor,
         (_STATE,
          option("--try-parking", is_flag=True,
                 help="Only test parking: move the CUDA state of a tiny process on a free GPU to "
                      "host memory and back (experimental).")),
         remote=False),
    Verb(("login-link",), "Print a one-time link to log in to a running `benchpool up`.",
         _login_link, (_STATE, option("--user", help="User to log in; you by default.")),
         remote=False),
    Verb(("token", "rotate"), "Replace the administrator's token of a running `benchpool up`.",
         _rotate, (_STATE,),
         "The printed file has the new token. The previous one becomes invalid within 5 s.",
         remote=False),
    Verb(("simulate",), "Run the decision core over cases in files.", _simulate,
         (argument("files", metavar="FILE...", nargs=-1, required=True,
                   type=click.Path(dir_okay=False)),
          option("--case", metavar="NAME", help="Run only this case."),
          option("--explain", is_flag=True, help="Add the reason of every waiting job."),
          option("--shares", is_flag=True, help="The files hold share divisions.")),
         "Exit status: 0 all hold, 1 some case failed, 2 unusable input.", remote=False),
    Verb(("bench", "time"), "Time the decision core, or with `admissions` the whole service.",
         _bench,
         (argument("shape", metavar="SHAPE", type=click.Choice(SHAPES)),
          option("--nodes", type=click.IntRange(1), metavar="N",
                 help="Number of nodes; each shape has its own default."),
          option("--mix", type=click.Choice(["baseline", "large"]), default="baseline",
                 help="For admissions: 15,000 or 50,000 jobs."),
          option("--clock", type=click.Choice(["real", "virtual"]), default="virtual",
                 help="For admissions: wait for each event, or advance the clock to it."),
          option("--policy", type=click.Choice(["eager", "protected"]), default="eager",
                 help="For admissions: evict whenever it is allowed, or let started jobs run.")),
         "Exit status: 0 if the plan is the one that the shape must have, else 1.", remote=False),
    REPLAY,
)  # fmt: skip
