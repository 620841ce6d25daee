"""Why detections of instances score what they score: kinds of error, thresholds, calibration, confusion."""
