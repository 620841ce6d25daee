"""EvalAI on a laptop: what its worker does with a bundle and a submission."""
