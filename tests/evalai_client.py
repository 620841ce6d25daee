"""The official `evalai` client without its check for a newer version."""

import sys

import evalai.main

evalai.main.get_latest_version = lambda: "0"
sys.argv[0] = "evalai"
evalai.main.main()
