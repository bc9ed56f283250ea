"""The text encodings that are read, by the names that documents and servers use."""

from __future__ import annotations

import codecs
import re

_READ = re.compile(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp(125\d|437|85\d|86\d|874|932|949|950)"
    r"|koi8-[rtu]|mac-(roman|cyrillic|greek|latin2|turkish)|tis-620|shift_jis|euc_(jp|kr)|iso2022_jp|gb2312|gbk|gb18030"
    r"|big5|big5hkscs"
)


def known(name: str) -> str | None:
    """Python's name for the encoding ``name``; None when it is not read.

    Only decoders that take linear time and give valid Unicode are used. Punycode takes quadratic time; utf-7 and the
    escape encodings can give half of a surrogate pair.
    """
    try:
        python_name = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError: for example a name with NUL
        return None
    return python_name if _READ.fullmatch(python_name) else None


def is_unicode(path: str) -> bool:
    """Whether a path from the operating system is valid Unicode."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)
