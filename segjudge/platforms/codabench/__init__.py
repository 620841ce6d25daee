"""Codabench: building competitions from the same bundle, checking, trying and uploading them."""
