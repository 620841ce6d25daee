# A static submission as an image. Build it from the repository's root:
#   docker build -f code_upload_challenge_evaluation/docker/static.Dockerfile -t my-submission .
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
RUN pip install --no-cache-dir --no-deps .

USER agent
WORKDIR /tmp
# The platform sets SUBMISSION_PATH and mounts /dataset.
ENTRYPOINT ["python", "-m", "segjudge.code_upload_challenge_evaluation.static.main"]
