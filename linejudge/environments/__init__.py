"""The tracks as Gymnasium environments: `import linejudge.environments` registers them.

`gymnasium.make("linejudge/VideoObjectSegmentation-v0", truth=…, frames=…)` and
`gymnasium.make("linejudge/InteractiveSegmentation-v0", truth=…, frames=…)` need no network.
"""

from __future__ import annotations

try:
    import gymnasium
except ModuleNotFoundError:
    found = "gymnasium is not installed; the environments need, in the checkout: pip install -e '.[environments]'"
    raise ModuleNotFoundError(found, name="gymnasium") from None

VIDEO = "linejudge/VideoObjectSegmentation-v0"
INTERACTIVE = "linejudge/InteractiveSegmentation-v0"

# Registered once, however often this is imported anew.
for _name, _entry in (
    (VIDEO, "linejudge.environments.video:VideoObjectSegmentation"),
    (INTERACTIVE, "linejudge.environments.interactive:InteractiveSegmentation"),
):
    if _name not in gymnasium.registry:
        gymnasium.register(id=_name, entry_point=_entry, disable_env_checker=True)
