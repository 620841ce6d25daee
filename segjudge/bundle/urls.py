"""Recognising web addresses as the server's validator does."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit, urlunsplit

_SCHEMES = ("http", "https", "ftp", "ftps")
_LETTERS = "\u00a1-\uffff"
_BYTE = r"(25[0-5]|2[0-4]\d|[0-1]?\d?\d)"
_NAME = rf"[a-z{_LETTERS}0-9]([a-z{_LETTERS}0-9-]{{0,61}}[a-z{_LETTERS}0-9])?"
_DOMAINS = rf"(\.(?!-)[a-z{_LETTERS}0-9-]{{1,63}}(?<!-))*"
_TOP = rf"\.(?!-)([a-z{_LETTERS}-]{{2,63}}|xn--[a-z0-9]{{1,59}})(?<!-)\.?"
_HOST = rf"({_BYTE}(\.{_BYTE}){{3}}|\[[0-9a-f:.]+\]|{_NAME}{_DOMAINS}{_TOP}|localhost)"
_ADDRESS = rf"[a-z0-9.+-]*://([^\s:@/]+(:[^\s:@/]*)?@)?{_HOST}(:\d{{2,5}})?([/?#]\S*)?"
_IPV6 = re.compile(r"\[(.+)\](:\d{2,5})?")
#: The most characters of a host's name.
_MOST_HOST = 253


def is_url(text: str) -> bool:
    """Return whether a text is an address of http, https, ftp or ftps."""
    if text.split("://", maxsplit=1)[0].lower() not in _SCHEMES:
        return False
    try:
        parts = urlsplit(text)
        if not _is_address(text):
            name = parts.netloc.encode("idna").decode("ascii")
            return _is_address(urlunsplit(parts._replace(netloc=name))) and len(parts.netloc) <= _MOST_HOST
        bracketed = _IPV6.fullmatch(parts.netloc)
        if bracketed:
            ipaddress.IPv6Address(bracketed.group(1))
    except ValueError:
        return False
    return len(parts.netloc) <= _MOST_HOST


def _is_address(text: str) -> bool:
    return re.fullmatch(_ADDRESS, text, re.IGNORECASE) is not None  # compiled when first needed: it takes 30 ms
