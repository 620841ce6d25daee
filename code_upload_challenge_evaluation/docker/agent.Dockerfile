# An agent as an image. Build it from the repository's root:
#   docker build -f code_upload_challenge_evaluation/docker/agent.Dockerfile -t my-agent .
# Add your packages to agent.in, then run `uv pip compile --generate-hashes agent.in -o agent.lock`.
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
COPY examples/agents agents
# An agent needs only the packages of the lock: grpc, protobuf, numpy and Pillow.
RUN pip install --no-cache-dir --no-deps .

USER agent
WORKDIR /tmp
ENTRYPOINT ["python", "/opt/agent/agents/agent.py"]
