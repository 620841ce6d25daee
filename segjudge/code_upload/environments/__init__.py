"""The Gymnasium environments for agents, registered by `import segjudge.code_upload.environments`.

`gymnasium.make("segjudge/VideoObjectSegmentation-v0", truth=…, frames=…)` and
`gymnasium.make("segjudge/InteractiveSegmentation-v0", truth=…, frames=…)` need no network. `tasks` adapts these
environments, and any other registered one, to the gRPC service.
"""

from segjudge.system.extras import make_error

try:
    import gymnasium
except ModuleNotFoundError:
    raise make_error("agents", __name__, "gymnasium") from None

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
