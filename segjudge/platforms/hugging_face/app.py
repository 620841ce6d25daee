"""The pages of a board's Space, by Gradio: `app.py` of the Space calls `launch`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
from huggingface_hub import HfApi

from segjudge.ledger.rules import MOST_BYTES

from .push import SECRET
from .requests import MOST_CHARACTERS
from .settings import SpaceSettings
from .space import Account, Space, render_boards, render_list, render_rules, render_text

_CSS = Path(__file__).with_name("files") / "space.css"
#: The number of rows that are shown first.
_FIRST = 100
_LOG_IN = "Log in with your Hugging Face account to submit and to see your submissions."


def launch(path: str) -> None:
    """Serve the Space whose settings are in a file."""
    settings = SpaceSettings.from_json(Path(path).read_text(encoding="utf-8"))
    space = Space.open(settings, HfApi(token=os.environ.get(SECRET)))
    theme = gr.themes.Default(font="system-ui", font_mono="monospace")  # no fonts of other servers
    make_app(space).launch(css_paths=_CSS, theme=theme, max_file_size=MOST_BYTES, footer_links=[])


def make_app(space: Space) -> gr.Blocks:
    """Return the pages of a Space."""
    rules = space.settings.rules

    def show_boards() -> Iterator[str]:
        boards = space.list_boards()
        yield render_boards(boards, _FIRST)  # all rows of a long leaderboard take seconds
        yield render_boards(boards)

    def show_mine(profile: gr.OAuthProfile | None) -> str:
        account = _account_of(profile)
        return render_list(space.list_submissions(account)) if account else render_text(_LOG_IN)

    def submit(
        method: str,
        phase: str,
        file: str | None,
        profile: gr.OAuthProfile | None,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - Gradio's way
    ) -> str:
        account = _account_of(profile)
        if account is None:
            return render_text(_LOG_IN)
        progress(0.5, "Storing your file")
        return render_text(space.submit(account, method, phase, file or ""))

    def withdraw(number: str, profile: gr.OAuthProfile | None) -> str:
        account = _account_of(profile)
        return render_text(space.withdraw(account, number.strip()) if account else _LOG_IN)

    app = gr.Blocks(title=rules.title, analytics_enabled=False)
    with app:
        gr.HTML(render_text(space.settings.about, title=rules.title))
        gr.LoginButton()
        with gr.Tab("Leaderboard") as board_tab:
            boards = gr.HTML()
        with gr.Tab("Submit"):
            names = [phase.codename for phase in rules.phases]
            phase = gr.Radio(names, value=names[0], label="Phase")
            method = gr.Textbox(label="Method", info="Its name on the leaderboard", max_length=MOST_CHARACTERS)
            file = gr.File(label="File", type="filepath")
            send = gr.Button("Submit", variant="primary")
            answer = gr.HTML(elem_classes="answer")
        with gr.Tab("My submissions") as list_tab:
            mine = gr.HTML()
            number = gr.Textbox(label="Submission to withdraw", info="Its number", max_length=9)
            remove = gr.Button("Withdraw")
            removal = gr.HTML(elem_classes="answer")
        with gr.Tab("Rules"):
            gr.HTML(render_rules(space.settings))
        app.load(show_boards, outputs=boards)
        app.load(show_mine, outputs=mine)
        board_tab.select(show_boards, outputs=boards)
        list_tab.select(show_mine, outputs=mine)
        send.click(submit, [method, phase, file], answer)
        remove.click(withdraw, number, removal).then(show_mine, outputs=mine)
    return app


def _account_of(profile: gr.OAuthProfile | None) -> Account | None:
    """Return who is logged in: the stable identifier, and the name, which may change."""
    return None if profile is None else Account(str(profile["sub"]), profile.username)
