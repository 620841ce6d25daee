"""The tracks as Gymnasium environments: `import segjudge.code_upload.environments` registers them.

`gymnasium.make("segjudge/VideoObjectSegmentation-v0", truth=…, frames=…)` and
`gymnasium.make("segjudge/InteractiveSegmentation-v0", truth=…, frames=…)` need no network.
"""

from segjudge.system.errors import install_line

try:
    import gymnasium
except ModuleNotFoundError:
    found = f"gymnasium is not installed; the environments need more: {install_line('environments')}"
    raise ModuleNotFoundError(found, name="gymnasium") from None

VIDEO = "segjudge/VideoObjectSegmentation-v0"
INTERACTIVE = "segjudge/InteractiveSegmentation-v0"

# Registered once, however often this is imported anew.
for _name, _entry in (
    (VIDEO, "segjudge.code_upload.environments.video:VideoObjectSegmentation"),
    (INTERACTIVE, "segjudge.code_upload.environments.interactive:InteractiveSegmentation"),
):
    if _name not in gymnasium.registry:
        gymnasium.register(id=_name, entry_point=_entry, disable_env_checker=True)
