"""`segjudge new`: a small repository with a challenge, whose scorers are the installed package's."""
