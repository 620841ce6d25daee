"""Scoring masks in memory, one module for each track."""
