"""Allowed notification addresses: the scheduler calls them from inside the site."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from benchpool_scheduler.contract.notifications import NewAddress
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.notifications import addresses, hosts, site
from benchpool_scheduler.notifications.site import MailServer, SiteNotifications

SECRET = "0123456789abcdef"
MAIL = "mail:\n  host: mx\n  sender: a@b.org\n  domains: [b.org]\n"
SITE = SiteNotifications(
    mail=MailServer("mx.example.org", "benchpool@example.org", ("example.org",)),
    kinds=("https", "slack", "matrixs", "zulip"),
    hosts=("matrix.example.org", "hooks.internal"),
)


@pytest.mark.parametrize(
    "url",
    [
        "susan@example.org",
        "https://hooks.example.com/a/b",
        "http://hooks.internal:8080/a",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "matrixs://susan:pass@matrix.example.org/%23room",
    ],
)
def test_allowed_addresses_are_accepted(url: str) -> None:
    addresses.check(NewAddress(url, SECRET), SITE)
    shown = addresses.shown(url)
    assert all(secret not in shown for secret in ("TIia", "pass", "/a"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("susan@example.com", "only to addresses at @example.org"),
        ("susan@example.org, joe@example.org", "not a mail address"),
        ("susan@example.org?smtp=10.0.0.1", "not a mail address"),
        ("http://hooks.example.com/a", "and port 443"),
        ("https://hooks.example.com:22/a", "and port 443"),
        ("https://susan@hooks.example.com/a", "without a user"),
        ("https:///a", "HOST/PATH"),
        ("https://[::1/a", "cannot be read"),
        ("https://hooks.example.com/a\x01b", "other invalid characters"),
        ("https://hooks.example.com/a b", "other invalid characters"),
        ("https://hooks.example.com/a\u202eb", "other invalid characters"),
        ("mailto://susan:pw@10.0.0.1", "does not send to mailto"),
        ("json://10.0.0.1/", "does not send to json"),
        ("file:///etc/passwd", "does not send to file"),
        ("matrixs://susan:pass@10.0.0.1/%23room", "only hosts that"),
        ("zulip://bot@chat.inside.example/a" + 31 * "b", "only hosts that"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?x=1", "one address"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIia, json://10.0.0.1", "one address"),
    ],
)
def test_rejected_address_is_not_repeated_in_message(url: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        addresses.check(NewAddress(url, SECRET), SITE)
    assert "pass" not in refused.value.message
    assert "TIia" not in refused.value.message


def test_webhook_requires_secret_and_site_must_enable_sending() -> None:
    with pytest.raises(InvalidInput, match="at least 16 characters"):
        addresses.check(NewAddress("https://hooks.example.com/a"), SITE)
    with pytest.raises(InvalidInput, match="sends no notifications"):
        addresses.check(NewAddress("susan@example.org"), SiteNotifications())


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "::ffff:0:10.0.0.1", "::10.0.0.1"),
        *("fec0::1", "64:ff9b:1::1", "192.88.99.1"),
    ],
)
async def test_host_resolving_into_site_is_not_called(address: str) -> None:
    async def resolve(host: str, port: int) -> Collection[str]:
        return ["93.184.215.14", address]

    with pytest.raises(hosts.UnsafeHost):
        await hosts.address_of("hooks.example.com", 443, (), resolve)
    named = await hosts.address_of("hooks.internal", 443, SITE.hosts, resolve)
    assert named == "93.184.215.14"


def test_site_notifications_file_enables_only_listed_kinds(tmp_path: Path) -> None:
    file = tmp_path / site.FILE
    assert site.load(file) == SiteNotifications()
    file.write_text("kinds: [https]\nper_hour: 3\n")
    assert site.load(file).offered == ("https",)
    assert site.load(file).sends
    file.write_text("# nothing yet\n")
    assert not site.load(file).sends


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [https]\n", "line 1: kind is not a known key; did you mean `kinds`?"),
        (f"{MAIL}  port: hunter2\n", "line 5: mail.port is invalid: expected `int`"),
        (f"{MAIL}  pasword: hunter2\n", "line 5: mail.pasword is not a known key"),
        ("kinds:\n  - https\n  - 7\n", "line 3: kinds[1] is invalid: expected `str`"),
        ("mail: hunter2\n", "line 1: mail is invalid: expected `object | null`"),
        ("mail: {host: hunter2}\n", "line 1: mail is invalid: object missing required field"),
        ("per_hour: 0\n", "line 1: per_hour is invalid: expected `int` >= 1"),
        ("- hunter2\n", "line 1: the document must be a mapping"),
        ("\nkinds: [https\n", "line 3: this is not YAML"),
        ("pool: ['https://hooks.example.com/hunter2']\n", "line 1: pool takes mail addresses"),
    ],
)
def test_invalid_file_is_rejected_with_position_but_no_value(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / site.FILE
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        site.load(file)
    assert message in refused.value.message
    assert "hunter2" not in refused.value.message
