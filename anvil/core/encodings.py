"""Which encodings of text are read, by the names that strangers give them."""

from __future__ import annotations

import codecs
import re

_READ = re.compile(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp(125\d|437|85\d|86\d|874|932|949|950)"
    r"|koi8-[rtu]|mac-(roman|cyrillic|greek|latin2|turkish)|tis-620|shift_jis|euc_(jp|kr)|iso2022_jp|gb2312|gbk|gb18030"
    r"|big5|big5hkscs"
)


def known(name: str) -> str | None:
    """Python's name of the encoding called ``name``; None when it is not one that is read.

    Only those with a decoder whose time grows with the text and that gives text which can be written: not punycode,
    whose time grows with the square, and not utf-7 or escapes, which give halves of characters.
    """
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError: no name at all, such as one with NUL
        return None
    return found if _READ.fullmatch(found) else None
