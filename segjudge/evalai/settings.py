"""Who we are on EvalAI: from the environment, or from a file that nobody else may read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from segjudge.evaluation_script.errors import HostError

from .client import is_safe

TOKEN, TEAM, HOST = "EVALAI_TOKEN", "EVALAI_HOST_TEAM", "EVALAI_HOST"
DEFAULT_HOST = "https://eval.ai"
#: KEY=VALUE lines, mode 0600.
FILE = os.path.join("~", ".config", "segjudge", "evalai")


@dataclass(frozen=True)
class EvalAISettings:
    """One account on one server."""

    host: str
    token: str = field(repr=False)
    team: int = 0


def settings(environment: Mapping[str, str] = os.environ, file: str = FILE) -> EvalAISettings:
    """What is set; the environment wins.  Says what is missing, and never shows the token."""
    held = _held(environment, file)
    host = held.get(HOST, DEFAULT_HOST).strip().rstrip("/")
    if "<" in host + held.get(TOKEN, "") + held.get(TEAM, ""):
        raise HostError(f"{TOKEN}, {TEAM} or {HOST} is still a placeholder in angle brackets")
    host = host if "://" in host else f"https://{host}"
    if not is_safe(host):
        raise HostError(f"{HOST} is {host}: a token goes over https only, or to this machine")
    token = held.get(TOKEN, "").strip()
    if not token:
        raise HostError(
            f"{TOKEN} is not set: copy it from your profile page, into the environment or {FILE} (mode 0600)"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise HostError(f"{TOKEN} is no token: it holds spaces or other characters; copy it again")
    team = held.get(TEAM, "").strip()
    if team and not team.isdecimal():
        raise HostError(f"{TEAM} is {team!r}: it is the number of your host team, in the address of its page")
    return EvalAISettings(host, token, int(team or 0))


_KEYS = (TOKEN, TEAM, HOST)


def server(environment: Mapping[str, str] = os.environ, file: str = FILE) -> str:
    """The server that is meant, whoever we are there."""
    host = _held(environment, file).get(HOST, DEFAULT_HOST).strip().rstrip("/")
    return host if "://" in host else f"https://{host}"


def _held(environment: Mapping[str, str], file: str) -> dict[str, str]:
    return {**_file(os.path.expanduser(file)), **{key: environment[key] for key in _KEYS if environment.get(key)}}


def _file(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise HostError(f"{path} can be read by others (mode {mode:o}): chmod 600 it, and renew the token")
            rows = [line.partition("=") for line in file.read().splitlines() if "=" in line and line[:1] != "#"]
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    return {key.strip().removeprefix("export ").strip(): value.strip().strip("\"'") for key, _, value in rows}
