"""Challenges on the Hugging Face Hub, played against a stand-in for the Hub."""

import os

# The client reads it when it is imported; the stand-in speaks git LFS only.
os.environ["HF_HUB_DISABLE_XET"] = "1"
