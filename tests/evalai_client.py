"""The official `evalai` client, except its question to the package index whether it is the newest."""

import sys

import evalai.main

evalai.main.get_latest_version = lambda: "0"
sys.argv[0] = "evalai"
evalai.main.main()
