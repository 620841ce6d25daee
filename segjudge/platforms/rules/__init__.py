"""Rules of servers for bundles, which EvalAI's and Codabench's checks share.

`rule_rows` has the form of a rule, one row for each of a server's tests; `fields` validates values as Django's REST
framework does; `problems` words what a check finds; `servers` names the code that the rows repeat.
"""

__all__ = ["fields", "problems", "rule_rows"]
