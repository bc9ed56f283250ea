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
_OPTION = re.compile(
    r"""(?ix) (?<!\S)( -p | --?[a-z-]{0,30}(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key)
    | password | passwd | passphrase )
    (\s+["']?) (?=[^\s"',;\d_]{0,200}(?:[\d_]|[^\w\s"',;?!.]))(?!-)([^\s"',;]{4,})"""
)
"""An option or the word, and a value after a blank that is no word of a sentence: it has a digit or a sign."""
_PASSWORD_OPTION = re.compile(
    r"""(?i)(?<!\S)(--?[a-z-]{0,30}(?:password|passwd|passphrase)\s+["']?)(?!-)([^\s"',;]{4,})"""
)
_CARD = re.compile(r"(?<![\w.])(?:\d[ -]?){12,18}\d(?![\w.]*\w)")
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
    text = _PASSWORD_OPTION.sub(rf"\1{SECRET}", text)
    text = _OPTION.sub(rf"\1\2{SECRET}", text)
    text = _CARD.sub(lambda match: SECRET if _is_card(match[0]) else match[0], text)
    text = _BEARER.sub(rf"\1\2{SECRET}", text)
    return _LONG.sub(lambda match: SECRET if _is_random(match[0]) else match[0], text)


def _is_card(number: str) -> bool:
    """Whether a number has the check digit of card numbers (ISO/IEC 7812)."""
    digits = [int(character) for character in number if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_random(word: str) -> bool:
    """Whether a long word has digits among letters, as keys do and words of a language do not."""
    digits = sum(character.isdigit() for character in word)
    switches = sum(first.isdigit() != second.isdigit() for first, second in pairwise(word))
    return digits >= 3 and (switches >= 4 or digits >= len(word) // 2)
