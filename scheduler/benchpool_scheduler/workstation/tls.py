"""The certificate of ``benchpool up``: the site's own files, or a self-signed one.

Only the proxy uses TLS; all servers behind it listen on loopback.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count
from benchpool_scheduler.workstation import files, host_names
from benchpool_scheduler.workstation.options import UpOptions

LIFETIME = datetime.timedelta(days=397)
"""Lifetime of a self-signed certificate: the maximum that browsers accept."""

RENEWED_BEFORE = datetime.timedelta(days=30)
ENDS_SOON = datetime.timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Certificate files for the proxy, and facts for users.

    Attributes:
        cert, key: PEM files; ``cert`` has the certificate first, then its chain.
        fingerprint: SHA-256 of the certificate, as browsers show it.
        ends: When it expires.
        self_signed: Whether it was created here; browsers warn until the user trusts it.
    """

    cert: Path
    key: Path
    fingerprint: str
    ends: datetime.datetime
    self_signed: bool


def find(options: UpOptions, folder: Path, now: datetime.datetime) -> Certificate | None:
    """Return the requested certificate; None for plain HTTP.

    Args:
        folder: Folder of a self-signed certificate.

    Raises:
        InvalidInput: The files cannot be used; the message names option, file and remedy.
    """
    if options.tls_cert is not None and options.tls_key is not None:
        given = _given(options.tls_cert.absolute(), options.tls_key.absolute(), now)
        if options.subdomains and f"*.{options.public_host}" not in _names_of(given.cert):
            raise InvalidInput(
                f"The certificate {given.cert} is not valid for *.{options.public_host}, where "
                "--subdomains puts the users' servers: give one that is, or omit --subdomains.",
                field="tls-cert",
            )
        return given
    if options.tls == "self-signed":
        return _self_signed(folder, names(options), now)
    return None


def names(options: UpOptions) -> tuple[str, ...]:
    """Return the names and addresses that browsers may use.

    >>> names(UpOptions(Path("s"), bind="192.0.2.7", public_host="gpus.example.org"))[:2]
    ('gpus.example.org', '192.0.2.7')
    """
    bound = () if ipaddress.ip_address(options.bind).is_unspecified else (options.bind,)
    asked = (options.public_host,) if options.public_host else ()
    below = (f"*.{options.public_host}",) if options.subdomains else ()
    bound = (*below, *bound)
    own = host_names.of_machine()[:1]
    return tuple(dict.fromkeys((*asked, *bound, *own, "localhost", "127.0.0.1")))


def trusting(certificate: Certificate) -> ssl.SSLContext:
    """Return a context that accepts exactly this certificate, under any host name."""
    context = ssl.create_default_context(cafile=certificate.cert)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def warning(certificate: Certificate, now: datetime.datetime) -> str | None:
    """Return a warning about a certificate that expires soon, or None.

    >>> at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    >>> one = Certificate(Path("c.pem"), Path("k.pem"), "AB", at, self_signed=False)
    >>> warning(one, at - datetime.timedelta(days=3, hours=1))
    'The certificate c.pem expires in 3 days (2026-01-01). Replace it and restart.'
    >>> warning(one, at - datetime.timedelta(days=60)) is None
    True
    """
    left = certificate.ends - now
    if left > ENDS_SOON:
        return None
    days = "today" if left.days < 1 else f"in {count(left.days, 'day')}"
    return (
        f"The certificate {certificate.cert} expires {days} ({certificate.ends:%Y-%m-%d}). "
        "Replace it and restart."
    )


def _given(cert: Path, key: Path, now: datetime.datetime) -> Certificate:
    for option, path in (("--tls-cert", cert), ("--tls-key", key)):
        try:
            path.read_bytes()
        except OSError as failed:
            raise InvalidInput(
                f"{option} {path} cannot be read ({failed.strerror}): name a PEM file that this "
                "account may read.",
                field=option.removeprefix("--"),
            ) from failed
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as bad:
        raise InvalidInput(
            f"--tls-cert {cert} and --tls-key {key} cannot be used ({bad.reason or 'not PEM'}): "
            "give a PEM certificate and its key, without a password.",
            field="tls-cert",
        ) from bad
    found = _read(cert, key, self_signed=False)
    if found.ends <= now:
        raise InvalidInput(
            f"The certificate {cert} expired on {found.ends:%Y-%m-%d}. Give a newer one with "
            "--tls-cert.",
            field="tls-cert",
        )
    return found


def _no_password() -> str:
    # OpenSSL would prompt at the terminal during a start.
    return ""


def _self_signed(folder: Path, wanted: Collection[str], now: datetime.datetime) -> Certificate:
    cert, key = folder / "cert.pem", folder / "key.pem"
    folder.mkdir(mode=0o700, exist_ok=True)
    if cert.exists() and key.exists():
        kept = _read(cert, key, self_signed=True)
        if kept.ends - now > RENEWED_BEFORE and set(wanted) <= _names_of(cert):
            return kept
    _make(cert, key, wanted, now)
    return _read(cert, key, self_signed=True)


def _make(cert: Path, key: Path, wanted: Collection[str], now: datetime.datetime) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchpool")])
    alternatives = x509.SubjectAlternativeName([_general(name) for name in wanted])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks may differ slightly.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(private, hashes.SHA256())
    )
    secret = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    files.write_private(key, secret)
    files.write_private(cert, made.public_bytes(serialization.Encoding.PEM))


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _read(cert: Path, key: Path, *, self_signed: bool) -> Certificate:
    first = _load(cert)
    digest = first.fingerprint(hashes.SHA256()).hex(":").upper()
    return Certificate(cert, key, digest, first.not_valid_after_utc, self_signed)


def _load(cert: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificates(cert.read_bytes())[0]


def _names_of(cert: Path) -> set[str]:
    found = _load(cert).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {
        *found.get_values_for_type(x509.DNSName),
        *(str(one) for one in found.get_values_for_type(x509.IPAddress)),
    }
