"""The toolkit of hosts and participants: score, pack, build, check and run a challenge."""
