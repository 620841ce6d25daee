"""Datasets in their published layouts → annotation files."""
