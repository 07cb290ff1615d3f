"""safetensors.torch: saved, loaded, in parts and as a model."""

import pathlib
import tempfile

import torch
from numbers_made import array, fill, show
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

weights = {
    "a": torch.tensor(array(3, 4)),
    "b": torch.tensor(array(5)).half(),
    "c": torch.tensor(array(2, 2)).bfloat16(),
    "d": torch.arange(4),
    "e": torch.ones(2, dtype=torch.bool),
}
with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder, "x.safetensors"))
    save_file(weights, path, metadata={"made": "here"})
    for name, x in sorted(load_file(path).items()):
        show(name, x.float())
        assert x.dtype == weights[name].dtype and (x == weights[name]).all()
    with safe_open(path, framework="pt") as file:
        show("part", file.get_slice("a")[:2, 1:], file.get_tensor("d"))
        assert file.metadata() == {"made": "here"}
    show("bytes", load(save(weights))["c"].float())
    model, other = (fill(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)), s) for s in (0.2, 0.7))
    save_model(model, path)
    load_model(other, path)
    show("model", *other.state_dict().values())
