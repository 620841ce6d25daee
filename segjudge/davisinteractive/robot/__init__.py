"""The robot that draws scribbles."""

from . import interactive_robot
from .interactive_robot import InteractiveScribblesRobot

__all__ = ["InteractiveScribblesRobot", "interactive_robot"]
