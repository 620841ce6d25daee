"""Small tools that interactive methods use."""
