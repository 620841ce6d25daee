"""An account on EvalAI: from the environment, or from a file that nobody else may read."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from segjudge.evaluation_script.files.problems import HostError

from .client import is_plain_token, is_safe_for_token

_KEYS = TOKEN, TEAM, HOST = "EVALAI_TOKEN", "EVALAI_HOST_TEAM", "EVALAI_HOST"
DEFAULT_HOST = "https://eval.ai"
#: KEY=VALUE lines, mode 0600.
FILE = os.path.join("~", ".config", "segjudge", "evalai")


@dataclass(frozen=True)
class EvalAISettings:
    """One account on one server."""

    host: str
    token: str = field(repr=False)
    team: int = 0


def read_settings(environment: Mapping[str, str] = os.environ, file: str = FILE) -> EvalAISettings:
    """Return the settings, of which the environment wins; raise HostError with what is missing, without the token."""
    values = account_values(_KEYS, environment, file)
    if "<" in values.get(HOST, "") + values.get(TOKEN, "") + values.get(TEAM, ""):
        raise HostError(f"{TOKEN}, {TEAM} or {HOST} is still a placeholder in angle brackets")
    host = _address(values)
    if not is_safe_for_token(host):
        raise HostError(f"{HOST} is {host}: a token goes over https only, or to this machine")
    token = values.get(TOKEN, "").strip()
    if not token:
        raise HostError(
            f"{TOKEN} is not set: copy it from your profile page, into the environment or {FILE} (mode 0600)"
        )
    if not is_plain_token(token):
        raise HostError(f"{TOKEN} is not a token: it holds spaces or other characters; copy it again")
    team = values.get(TEAM, "").strip()
    if team and not team.isdecimal():
        raise HostError(f"{TEAM} is {team!r}: it is the number of your host team, in the address of its page")
    return EvalAISettings(host, token, int(team or 0))


def server_address() -> str:
    """Return the server's address, which needs no account."""
    return _address(account_values(_KEYS, os.environ, FILE))


def _address(values: Mapping[str, str]) -> str:
    host = values.get(HOST, DEFAULT_HOST).strip().rstrip("/")
    return host if "://" in host else f"https://{host}"


def account_values(keys: Sequence[str], environment: Mapping[str, str], file: str) -> dict[str, str]:
    """Return what an account's file holds, and of the environment, which wins, these keys."""
    return {**_read(os.path.expanduser(file)), **{key: environment[key] for key in keys if environment.get(key)}}


def _read(path: str) -> dict[str, str]:
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
