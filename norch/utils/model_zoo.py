"""``norch.utils.model_zoo``: the older name of norch.hub's functions."""

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
