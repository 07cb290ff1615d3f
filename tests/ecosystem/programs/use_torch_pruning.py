"""torch-pruning: channels cut out of networks, with those that depend on them, as graphs of autograd tell."""

import torch
import torch_pruning as tp
import torchvision
from numbers_made import array, fill, show

x = torch.tensor(array(1, 3, 32, 32)).float()
for name, last in (("resnet18", "fc"), ("mobilenet_v2", "classifier")):
    model = fill(getattr(torchvision.models, name)(num_classes=7)).eval()
    kept = [m for m in getattr(model, last).modules() if isinstance(m, torch.nn.Linear) and m.out_features == 7]
    importance = tp.importance.MagnitudeImportance(p=2)
    pruner = tp.pruner.BasePruner(model, x, importance=importance, pruning_ratio=0.5, ignored_layers=kept)
    print(name, *tp.utils.count_ops_and_params(model, x))
    pruner.step()
    print(name, *tp.utils.count_ops_and_params(model, x))
    out = model(x)
    out.square().sum().backward()
    show(name, out, *[p.grad for p in model.parameters()][:2])
model = fill(torchvision.models.densenet121(num_classes=3)).eval()
graph = tp.DependencyGraph().build_dependency(model, x)
group = graph.get_pruning_group(model.features.conv0, tp.prune_conv_out_channels, idxs=[2, 6])
print("densenet121", len(group), graph.check_pruning_group(group))
group.prune()
show("densenet121", model(x))
