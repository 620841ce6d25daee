"""Where challenges run: EvalAI, Codabench and grand-challenge, a room each."""
