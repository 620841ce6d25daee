"""Challenges of other hosts, in the form of EvalAI's starter: hosted, remote, and code upload."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from .builders import ROOT

CONFIG = """
title: Colour naming
short_description: Name the colours
description: templates/description.html
evaluation_details: templates/evaluation_details.html
terms_and_conditions: templates/terms_and_conditions.html
submission_guidelines: templates/submission_guidelines.html
image: logo.png
evaluation_script: evaluation_script.zip
remote_evaluation: False
is_docker_based: False
start_date: 2026-01-01 00:00:00
end_date: 2036-12-31 23:59:59
published: True

leaderboard:
  - id: 1
    schema: {"labels": ["Accuracy", "Coverage"], "default_order_by": "Accuracy"}

challenge_phases:
  - id: 1
    name: Dev Phase
    description: templates/phase.html
    leaderboard_public: True
    is_public: True
    is_submission_public: True
    start_date: 2026-01-01 00:00:00
    end_date: 2036-12-31 23:59:59
    test_annotation_file: annotations/dev.json
    codename: dev
    max_submissions_per_day: 20
    max_submissions_per_month: 50
    max_submissions: 50
    submission_meta_attributes:
      - {name: Backbone, description: Which one, type: radio, options: ["A", "B"]}
  - id: 2
    name: Test Phase
    description: templates/phase.html
    leaderboard_public: True
    is_public: True
    is_submission_public: True
    start_date: 2026-01-01 00:00:00
    end_date: 2036-12-31 23:59:59
    test_annotation_file: annotations/test.json
    codename: test
    max_submissions_per_day: 20
    max_submissions_per_month: 50
    max_submissions: 50

dataset_splits:
  - {id: 1, name: Validation, codename: val}
  - {id: 2, name: Test, codename: test_split}

challenge_phase_splits:
  - challenge_phase_id: 1
    leaderboard_id: 1
    dataset_split_id: 1
    visibility: 3
    leaderboard_decimal_precision: 2
    is_leaderboard_order_descending: True
  - challenge_phase_id: 2
    leaderboard_id: 1
    dataset_split_id: 1
    visibility: 3
    leaderboard_decimal_precision: 2
    is_leaderboard_order_descending: True
  - challenge_phase_id: 2
    leaderboard_id: 1
    dataset_split_id: 2
    visibility: 1
    leaderboard_decimal_precision: 2
    is_leaderboard_order_descending: True
"""
TEXTS = ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines", "phase")
TRUTH = {"sky": "blue", "grass": "green", "snow": "white", "coal": "black"}

SCRIPT = {
    "__init__.py": "from .main import evaluate\n",
    "main.py": """
        import json
        import os

        from . import helpers
        from .measures.accuracy import accuracy

        NAMES = json.load(open(os.path.join(os.path.dirname(__file__), "data", "names.json")))


        def evaluate(test_annotation_file, user_submission_file, phase_codename, **kwargs):
            print("Starting Evaluation.....")
            truth = helpers.read(test_annotation_file)
            answers = helpers.read(user_submission_file)
            scores = {"Accuracy": accuracy(truth, answers), "Coverage": helpers.coverage(truth, answers)}
            splits = {"dev": ["val"], "test": ["val", "test_split"]}[phase_codename]
            output = {"result": [{split: scores} for split in splits]}
            output["submission_result"] = output["result"][0]
            return output
        """,
    "helpers.py": """
        import json


        def read(path):
            with open(path) as file:
                return json.load(file)


        def coverage(truth, answers):
            return len(set(truth) & set(answers)) / len(truth)
        """,
    "measures/__init__.py": "",
    "measures/accuracy.py": """
        from ..helpers import coverage


        def accuracy(truth, answers):
            assert coverage(truth, truth) == 1
            return sum(answers.get(name) == colour for name, colour in truth.items()) / len(truth)
        """,
    "data/names.json": '["blue", "green"]',
}

#: The remote starter's form: the submission comes first, and the result is the list that the REST API takes.
REMOTE = """
    import json
    import os

    from colours import accuracy


    def evaluate(user_submission_file, phase_codename, test_annotation_file=None, **kwargs):
        print("Starting Evaluation.....", kwargs["submission_metadata"]["id"])
        path = test_annotation_file or os.path.join(os.path.dirname(__file__), "truth", phase_codename + ".json")
        with open(path) as truth, open(user_submission_file) as answers:
            scores = {"Accuracy": accuracy(json.load(truth), json.load(answers)), "Coverage": 1.0}
        shown = [{"split": "val", "show_to_participant": True, "accuracies": scores}]
        hidden = [{"split": "test_split", "show_to_participant": False, "accuracies": scores}]
        return {"result": shown + (hidden if phase_codename == "test" else []), "submission_result": scores}
    """
COLOURS = """
    def accuracy(truth, answers):
        return sum(answers.get(name) == colour for name, colour in truth.items()) / len(truth)
    """


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))


def starter(folder: Path, script: dict[str, str] | None = None, config: str = CONFIG) -> Path:
    """Return a host's repository; `script` is written over the modules of the evaluation script."""
    written(folder, {"challenge_config.yaml": config, "README.md": "# Colours\n", ".gitignore": "*.zip\n"})
    written(folder, {f"templates/{name}.html": f"<p>{name}</p>\n" for name in TEXTS})
    written(folder, {f"annotations/{name}.json": json.dumps(TRUTH) for name in ("dev", "test")})
    written(folder / "evaluation_script", {**SCRIPT, **(script or {})})
    (folder / "logo.png").write_bytes((ROOT / "logo.png").read_bytes())
    return folder


def with_samples(folder: Path) -> Path:
    """Add sample submissions in this project's form."""
    half = dict(list(TRUTH.items())[:2])
    written(folder, {f"examples/{phase}/half.json": json.dumps(half) for phase in ("dev", "test")})
    written(folder, {"examples/dev/all.json": json.dumps(TRUTH)})
    return folder


def remote(folder: Path) -> Path:
    """Return a challenge that its host evaluates; the bundle does not contain the truth."""
    text = CONFIG.replace("remote_evaluation: False", "remote_evaluation: True")
    lines = [line for line in text.splitlines() if "test_annotation_file" not in line]
    starter(folder, config="\n".join(lines))
    worker = {"evaluate.py": REMOTE, "colours.py": COLOURS, "main.py": "raise SystemExit('the starter worker')\n"}
    written(folder / "remote_challenge_evaluation", worker)
    truth = {f"truth/{phase}.json": json.dumps(TRUTH) for phase in ("dev", "test")}
    written(folder / "remote_challenge_evaluation", truth)
    return folder


#: What the starter keeps in `utils`, for both images: here messages are JSON.
RPC = """
    import json

    import grpc

    METHODS = ("get_action_space", "act_on_environment")


    def handlers(environment):
        def method(name):
            def answer(data, context):
                return json.dumps(getattr(environment, name)(json.loads(data))).encode()

            return grpc.unary_unary_rpc_method_handler(answer)

        return grpc.method_handlers_generic_handler("evaluation.Environment", {name: method(name) for name in METHODS})


    def call(channel, name, message):
        return json.loads(channel.unary_unary("/evaluation.Environment/" + name)(json.dumps(message).encode()))
    """
ENVIRONMENT = """
    import json
    import os
    import time
    from concurrent import futures

    import grpc
    import requests

    import evaluation_rpc

    BODY = json.loads(os.environ["BODY"])


    class Environment:
        right = 0
        steps = 0

        def get_action_space(self, message):
            return ["left", "right"]

        def act_on_environment(self, action):
            self.right += action == "right"
            self.steps += 1
            if self.steps == 4:
                report(self.right / 4)
            return {"all_complete": self.steps == 4}


    def report(score):
        scores = {"Accuracy": score, "Coverage": 1.0}
        requests.put(
            os.environ["EVALAI_API_SERVER"] + "/api/jobs/challenge/%s/update_submission/" % BODY["challenge_pk"],
            headers={"Authorization": "Bearer " + os.environ["AUTH_TOKEN"]},
            data={
                "challenge_phase": BODY["phase_pk"], "submission": BODY["submission_pk"], "stdout": "", "stderr": "",
                "submission_status": "FINISHED",
                "result": json.dumps([{"split": "val", "show_to_participant": True, "accuracies": scores}]),
            },
        ).raise_for_status()


    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers([evaluation_rpc.handlers(Environment())])
    server.add_insecure_port("[::]:%PORT%")
    server.start()
    print("listening for", os.environ["SUBMISSION_TIME_LIMIT"], "seconds")
    while True:
        time.sleep(4)
    """
AGENT = """
    import sys

    import grpc

    import evaluation_rpc

    channel = grpc.insecure_channel("localhost:%PORT%")
    print(evaluation_rpc.call(channel, "get_action_space", None))
    for action in sys.argv[1:]:
        evaluation_rpc.call(channel, "act_on_environment", action)
    """


def code_upload(folder: Path, port: int) -> Path:
    """Return a challenge whose participants upload agents, with the starter's folders."""
    text = CONFIG.replace("is_docker_based: False", "is_docker_based: True")
    text = text.replace("test_annotation_file: annotations/dev.json", "environment_image: registry.example.org/env:1")
    text = text.replace("test_annotation_file: annotations/test.json", "environment_image: registry.example.org/env:1")
    starter(folder, config=text)
    files = {"utils/evaluation_rpc.py": RPC, "environment/environment.py": ENVIRONMENT, "agent/agent.py": AGENT}
    written(
        folder / "code_upload_challenge_evaluation",
        {name: content.replace("%PORT%", str(port)) for name, content in files.items()},
    )
    return folder
