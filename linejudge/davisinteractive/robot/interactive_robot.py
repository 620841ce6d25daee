"""The robot that draws scribbles."""

from linejudge.interactive.robot import InteractiveScribblesRobot

__all__ = ["InteractiveScribblesRobot"]
