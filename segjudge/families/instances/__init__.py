"""Instances: masks in memory, the kinds of error that TIDE tells apart, sections and pictures of the report."""
