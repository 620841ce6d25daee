"""What agents are asked, as Gymnasium environments: `import segjudge.code_upload.environments` registers them.

`gymnasium.make("segjudge/VideoObjectSegmentation-v0", truth=…, frames=…)` and
`gymnasium.make("segjudge/InteractiveSegmentation-v0", truth=…, frames=…)` need no network.  `tasks` has what the gRPC
service plays: the tasks of these environments, and any other environment that is registered.
"""

from segjudge.system.errors import install_line

try:
    import gymnasium
except ModuleNotFoundError:
    words = f"gymnasium is not installed; the environments need more: {install_line('environments')}"
    raise ModuleNotFoundError(words, name="gymnasium") from None

__all__ = ["INTERACTIVE", "VIDEO", "tasks"]

VIDEO = "segjudge/VideoObjectSegmentation-v0"
INTERACTIVE = "segjudge/InteractiveSegmentation-v0"

# Registered once, however often this is imported anew.
for _name, _entry in (
    (VIDEO, "segjudge.code_upload.environments.video:VideoObjectSegmentation"),
    (INTERACTIVE, "segjudge.code_upload.environments.interactive:InteractiveSegmentation"),
):
    if _name not in gymnasium.registry:
        gymnasium.register(id=_name, entry_point=_entry, disable_env_checker=True)
