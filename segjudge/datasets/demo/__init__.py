"""Small synthetic datasets and submissions, made from a seed."""

SEED = 2017
