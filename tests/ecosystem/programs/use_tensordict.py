"""tensordict: indexed, stacked and mapped dicts of tensors, modules on them, parameters as one, tensorclasses."""

import torch
from numbers_made import array, fill, show
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

table = TensorDict({"a": torch.tensor(array(4, 3)).float(), "n": {"b": torch.arange(4)}}, batch_size=[4])
print(tuple(table.shape), sorted(map(str, table.keys(True, True))))
show("indexed", table[1:3]["a"], table["n", "b"])
show("stacked", torch.stack([table, table])["a"], torch.cat([table, table])["n", "b"])
show("mapped", (table + 1)["a"], table.apply(lambda x: x * 2)["n", "b"], table.to(torch.float64)["a"])
print(tuple(table.reshape(2, 2).shape), tuple(table.unsqueeze(0).shape), table.to(torch.float64)["a"].dtype)

layers = [TensorDictModule(fill(torch.nn.Linear(3, 5)), ["a"], ["h"]), TensorDictModule(torch.relu, ["h"], ["out"])]
model = TensorDictSequential(*layers)
out = model(table.clone())["out"]
out.square().sum().backward()
show("modules", out, *[p.grad for p in model.parameters()])

net = fill(torch.nn.Linear(3, 2))
with (TensorDict.from_module(net) * 2).to_module(net):
    show("parameters", net(table["a"]))
show("as before", net(table["a"]))


@tensorclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor


pair = Pair(x=torch.tensor(array(3, 2)), y=torch.zeros(3), batch_size=[3])
show("tensorclass", pair[:2].x, torch.stack([pair, pair]).y)
