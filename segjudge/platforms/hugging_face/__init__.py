"""The Hugging Face Hub: a challenge whose Space takes submissions, scored by an evaluator anywhere.

`requests` are what the Space writes and the evaluator reads.
"""

__all__ = ["requests"]
