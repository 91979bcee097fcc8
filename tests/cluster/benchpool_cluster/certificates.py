"""A small private certificate authority for the cluster: serving, client and signing keys."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """Authority that signs certificates into one folder as ``NAME.crt`` and ``NAME.key``.

    Its own certificate is ``ca``.
    """

    folder: Path
    name: x509.Name
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> Authority:
        """Create an authority in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        key = write_key(folder / "ca.key")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster for tests")])
        authority = cls(folder, name, key)
        builder = authority._certificate(name, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        authority._write("ca", builder)
        return authority

    def serve(self, name: str, hosts: Iterable[str]) -> None:
        """Sign a server's certificate for host names and addresses."""
        others = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = self._issue(name, [], ExtendedKeyUsageOID.SERVER_AUTH)
        self._write(name, builder.add_extension(others, critical=False))

    def caller(self, name: str, user: str, groups: Iterable[str] = ()) -> None:
        """Sign a client's certificate for a user and its groups."""
        words = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        words.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        self._write(name, self._issue(name, words, ExtendedKeyUsageOID.CLIENT_AUTH))

    def path(self, name: str) -> Path:
        """Return the path of a certificate; its key has the suffix ``.key``."""
        return self.folder / f"{name}.crt"

    def _issue(
        self, name: str, words: list[x509.NameAttribute[str]], use: x509.ObjectIdentifier
    ) -> x509.CertificateBuilder:
        key = write_key(self.folder / f"{name}.key")
        subject = x509.Name(words or [x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._certificate(subject, key.public_key()).add_extension(
            x509.ExtendedKeyUsage([use]), critical=False
        )

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + 30 * DAY)
        )

    def _write(self, name: str, builder: x509.CertificateBuilder) -> None:
        signed = builder.sign(self.key, hashes.SHA256())
        self.path(name).write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def write_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """Create a private key and write it, readable for its owner only."""
    key = ec.generate_private_key(ec.SECP256R1())
    file.touch(0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return key


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
