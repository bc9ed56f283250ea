"""Secrets and e-mail addresses in a question, replaced before it is written to a log."""

from __future__ import annotations

import re
from itertools import pairwise

EMAIL, SECRET = "[e-mail]", "[secret]"
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_PEM = re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)", re.DOTALL)
_USER_INFO = re.compile(r"(\w{1,20}://)[^\s/@]{1,200}@")
_NAMED = re.compile(
    r"""(?ix) (?<![^\W_])( pass(?:word|wd|phrase)? | pwd | secret | token | api[_-]?key | access[_-]?key
    | auth(?:orization)? | bearer | credentials? | client[_-]?secret )\b
    (["']?\s*(?:[:=]|\s(?:is|was)\s)\s*["']?(?:bearer\s+|basic\s+)?)
    ([^\s"',;]{4,})"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{12,})")
_KNOWN = re.compile(
    r"\b(?:sk-|pk-|rk-|sk_live_|sk_test_|ghp_|gho_|ghs_|ghu_|ghr_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|hf_|npm_"
    r"|pypi-|dop_v1_|SG\.|eyJ)[A-Za-z0-9._\-]{8,}"
)
_LONG = re.compile(r"(?<![\w/.-])[A-Za-z0-9+/_-]{24,}={0,2}(?![\w.-])")


def masked(text: str) -> str:
    """``text`` without what looks like an e-mail address, a password, a token or a key.

    They are recognized by their form. A secret in plain words is not recognized.
    """
    text = _PEM.sub(SECRET, text)
    text = _USER_INFO.sub(rf"\1{SECRET}@", text)
    text = _EMAIL.sub(EMAIL, text)
    text = _KNOWN.sub(SECRET, text)
    text = _NAMED.sub(rf"\1\2{SECRET}", text)
    text = _BEARER.sub(rf"\1\2{SECRET}", text)
    return _LONG.sub(lambda match: SECRET if _is_random(match[0]) else match[0], text)


def _is_random(word: str) -> bool:
    """Whether a long word has digits among letters, as keys do and words of a language do not."""
    digits = sum(character.isdigit() for character in word)
    switches = sum(first.isdigit() != second.isdigit() for first, second in pairwise(word))
    return digits >= 3 and (switches >= 4 or digits >= len(word) // 2)
