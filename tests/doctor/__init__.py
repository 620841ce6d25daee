"""Tests of the doctor, with samples that need no files, and with the demo of each family."""
