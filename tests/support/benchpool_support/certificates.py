"""Certificates for tests, signed by a certificate authority of their own."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_MAY_SIGN = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class IssuedFiles:
    """PEM files of one certificate and of the authority that signed it."""

    cert: Path
    key: Path
    authority: Path


def issue(folder: Path, *names: str, ends: datetime.datetime | None = None) -> IssuedFiles:
    """Write a certificate for these names, valid until ``ends`` or for 90 days."""
    now = datetime.datetime.now(datetime.UTC)
    end = ends or now + datetime.timedelta(days=90)
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
    ca = x509.BasicConstraints(ca=True, path_length=None)
    root = _begun(root_name, root_name, root_key, end).add_extension(ca, critical=True)
    root = root.add_extension(_MAY_SIGN, critical=True)
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    leaf = _begun(subject, root_name, key, end).add_extension(alternatives, critical=False)
    made = IssuedFiles(folder / "cert.pem", folder / "key.pem", folder / "authority.pem")
    # RFC 5280, 4.2.1.1 and 4.2.1.2, which Python 3.13 checks.
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    root, leaf = (one.add_extension(above, critical=False) for one in (root, leaf))
    made.authority.write_bytes(_signed(root, root_key))
    made.cert.write_bytes(_signed(leaf, root_key))
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - datetime.timedelta(days=180))
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, by: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
