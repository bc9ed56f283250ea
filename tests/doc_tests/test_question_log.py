"""What looks like a secret or an address is masked before a question is logged; plain questions stay."""

from __future__ import annotations

import time

import pytest

from anvil.doc_tests.question_log import masked


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("mail jane.doe+x@sub.example.co.uk please", "mail [e-mail] please"),
        ("why is ghp_16C7e42F292c6912E7710c838347Ae178B4a refused", "why is [secret] refused"),
        ("sk-proj-abcdefgh12345678 does not work", "[secret] does not work"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("password=hunter2 is rejected", "password=[secret] is rejected"),
        ("my password is hunter2", "my password is [secret]"),
        ("DB_PASSWORD=hunter2 has no effect", "DB_PASSWORD=[secret] has no effect"),
        ("export AWS_SECRET_ACCESS_KEY=wxyzabcd", "export AWS_SECRET_ACCESS_KEY=[secret]"),
        ('{"api_key": "abcd1234"}', '{"api_key": "[secret]"}'),
        ("Authorization: Bearer abc.def-ghi_123456", "Authorization: Bearer [secret]"),
        ("curl -H 'bearer abcdefghijklmnop'", "curl -H 'bearer [secret]'"),
        ("postgres://user:pw@db.example/x", "postgres://[secret]@db.example/x"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "[secret]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- help", "[secret] help"),
        ("mysql --password hunter2secret fails", "mysql --password [secret] fails"),
        ("--db-password correcthorse", "--db-password [secret]"),
        ("docker login -p s3cret!x", "docker login -p [secret]"),
        ("my login password hunter2! fails", "my login password [secret] fails"),
        ("card 4111 1111 1111 1111 declined", "card [secret] declined"),
        ("card 5500-0000-0000-0004", "card [secret]"),
        ("key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "key [secret]"),
    ],
)
def test_secrets_are_masked(text: str, logged: str) -> None:
    assert masked(text) == logged


@pytest.mark.parametrize(
    "text",
    [
        "How do I rotate the signing key?",
        "where is the token of the GitHub action stored",
        "what does chunking.max_chunk_size do",
        "guides/embedding.md#openai-or-a-compatible-server",
        "ANVIL_LIBRARY_TRANSCRIBE_AUDIO environment variable",
        "supercalifragilisticexpialidocious and internationalization-of-documentation",
        "password reset fails",
        "is bypass=true allowed",
        "what is the password policy?",
        "serve -p port",
        "order 4111 1111 1111 1112",
    ],
)
def test_plain_questions_stay(text: str) -> None:
    assert masked(text) == text


def test_a_long_text_is_masked_in_time() -> None:
    for part in ("a", "a@", "1 ", "11", "-p a", "--password ", "--a-", "password ", "x.", "-----BEGIN A", "://"):
        began = time.thread_time()
        masked(part * (100_000 // len(part)))
        assert time.thread_time() - began < 3, part  # in linear time a tenth of a second; in quadratic time minutes
