# The environment as an image. Build it from the repository's root:
#   docker build -f code_upload_challenge_evaluation/docker/environment.Dockerfile -t segjudge-environment .
# Put the packed annotation file of each phase into the folder `truth` in the root.
FROM python:3.11.14-slim-bookworm

RUN useradd --create-home --uid 10001 segjudge
WORKDIR /opt/segjudge
COPY code_upload_challenge_evaluation/docker/environment.lock ./
RUN pip install --no-cache-dir --require-hashes -r environment.lock
COPY pyproject.toml README.md LICENSE ./
COPY evaluation_script evaluation_script
COPY segjudge segjudge
COPY remote_challenge_evaluation remote_challenge_evaluation
COPY code_upload_challenge_evaluation code_upload_challenge_evaluation
RUN pip install --no-cache-dir --no-deps .
COPY truth /truth

USER segjudge
WORKDIR /tmp
EXPOSE 8085
# docs/code-upload.md describes time limits, more options and other environments.
ENTRYPOINT ["python", "-m", "segjudge.code_upload_challenge_evaluation.environment"]
CMD ["--env", "segjudge/VideoObjectSegmentation-v0", "--option", "truth=/truth/sequences-dev.zip", "--option", "frames=/dataset", "--option", "phase=sequences-dev"]
