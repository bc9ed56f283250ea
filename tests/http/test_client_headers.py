"""Values of HTTP headers. Headers in a strange form are ignored."""

from __future__ import annotations

import time

import pytest

from anvil.http import client


@pytest.mark.parametrize(
    ("said", "kind", "charset"),
    [
        ("", "", None),
        ("text/HTML", "text/html", None),
        ("text/plain; charset=UTF-8", "text/plain", "UTF-8"),
        ('text/plain; a=b; charset="latin 1"', "text/plain", "latin 1"),
        ("text/plain; charset*=utf-8''latin1", "text/plain", None),
        ("nonsense", "text/plain", None),
    ],
)
def test_the_type_of_a_body(said: str, kind: str, charset: str | None) -> None:
    assert client.content_type({"content-type": said}) == (kind, charset)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("", ""),
        ("inline", ""),
        ('attachment; filename="tide tables.pdf"', "tide tables.pdf"),
        ("attachment; filename*=UTF-8''%C3%BCber.pdf", "über.pdf"),
        ("attachment; filename*=idna''%C3%BCber.pdf", ""),
        ("attachment; filename*=no-such''a.pdf", "a.pdf"),
    ],
)
def test_the_name_of_an_attachment(said: str, name: str) -> None:
    assert client.attachment_name({"content-disposition": said}) == name


def test_a_type_without_end_takes_no_time() -> None:
    started = time.process_time()
    client.content_type({"content-type": 'text/plain; "' + ";" * 100_000})
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("said", "when"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"),
        ("Wed, 21 Oct 2015 07:28:00 +0200", "2015-10-21T05:28:00Z"),
        ("", None),
        ("yesterday", None),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("Wed, 21 Oct 2015 07:28:00 +99999999999999", None),
    ],
)
def test_when_a_body_was_changed(said: str, when: str | None) -> None:
    assert client.http_date(said) == when
