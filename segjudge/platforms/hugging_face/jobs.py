"""A Job of the Hub as the evaluator: a webhook starts one at each new submission."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.hub_dataset import repeat_call

from .push import digest_of_token, may_read
from .requests import PRIVATE, SUBMISSIONS

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: The variable that `push` reads the evaluator's token from, and the one of Jobs with its digest.
TOKEN, _DIGEST = "EVALUATOR_TOKEN", "TOKEN_DIGEST"
#: The image of Jobs, and how long one may score.
_IMAGE, _TIMEOUT = "python:3.12", "12h"


def start_jobs(api: HfApi, repository: str, requirement: str, token: str) -> Iterator[str]:
    """Let each submission start a Job that scores what is waiting; yield a line for each change.

    The requirement is the line by which pip installs Segjudge. The token is a secret of the webhook and of the first
    Job, which runs at once: webhooks copy their Job from one that ran.
    """
    name, private = repository + SUBMISSIONS, repository + PRIVATE
    if not may_read(api, private, token):
        raise HostError(f"{TOKEN}: may not read {private}. Make the evaluator's token, as `push` says")
    install = f"pip install --quiet {shlex.quote(requirement)}"
    command = ["bash", "-c", f"{install} && exec segjudge worker --platform hugging-face {repository} --once"]
    digest = digest_of_token(token)
    hooks = [
        hook
        for hook in repeat_call(api.list_webhooks, repository)
        if hook.job and [(item.type, item.name) for item in hook.watched] == [("dataset", name)]
    ]
    for hook in hooks:
        job = hook.job
        if job and not hook.disabled and job.command == command and (job.environment or {}).get(_DIGEST) == digest:
            return
    owner, environment, secrets = repository.partition("/")[0], {_DIGEST: digest}, {"HF_TOKEN": token}
    started = repeat_call(
        lambda: api.run_job(
            image=_IMAGE, command=command, env=environment, secrets=secrets, timeout=_TIMEOUT, namespace=owner
        ),
        repository,
    )
    watched: list[Any] = [{"type": "dataset", "name": name}]
    repeat_call(
        lambda: api.create_webhook(job_id=started.id, watched=watched, domains=["repo"], secrets=secrets), repository
    )
    for hook in hooks:
        repeat_call(partial(api.delete_webhook, hook.id), repository)
    yield f"each submission starts a Job that scores it; the first one, {started.id}, runs now"
