"""The diagnosis of submissions: kinds of error, thresholds, calibration, confusion, and losses by unit."""
