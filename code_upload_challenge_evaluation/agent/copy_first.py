"""An agent that answers every frame with the first mask: what a method has to beat."""

from segjudge.code_upload_challenge_evaluation.agent.agent import Method, run

if __name__ == "__main__":
    run(Method)  # the starter's method does just that
