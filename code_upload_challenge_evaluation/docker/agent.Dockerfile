# An agent as an image; build it from the root of the repository:
#   docker build -f code_upload_challenge_evaluation/docker/agent.Dockerfile -t my-agent .
# Your own packages belong into agent.in; `uv pip compile --generate-hashes agent.in -o agent.lock` renews the lock.
FROM python:3.11.14-slim-bookworm

RUN useradd --create-home --uid 10001 agent
WORKDIR /opt/agent
COPY code_upload_challenge_evaluation/docker/agent.lock ./
RUN pip install --no-cache-dir --require-hashes -r agent.lock
COPY pyproject.toml README.md LICENSE ./
COPY evaluation_script evaluation_script
COPY segjudge segjudge
COPY remote_challenge_evaluation remote_challenge_evaluation
COPY code_upload_challenge_evaluation code_upload_challenge_evaluation
# Of the toolkit an agent needs no more than the lock holds: grpc, protobuf, numpy and Pillow.
RUN pip install --no-cache-dir --no-deps .

USER agent
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "segjudge.code_upload_challenge_evaluation.agent.agent"]
