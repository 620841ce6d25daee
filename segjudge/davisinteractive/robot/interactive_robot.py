"""The robot that draws scribbles."""

from segjudge.interactive.robot import InteractiveScribblesRobot

__all__ = ["InteractiveScribblesRobot"]
