"""pytorch-metric-learning: losses with gradients, miners and distances."""

import torch
from numbers_made import array, show
from pytorch_metric_learning import distances, losses, miners

x, y = torch.tensor(array(8, 4)).float().requires_grad_(), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
for (
    name
) in "Triplet NTXent Contrastive MultiSimilarity SupCon Circle GeneralizedLiftedStructure Angular NPairs".split():
    kind = next(cls for suffix in ("MarginLoss", "Loss") if (cls := getattr(losses, f"{name}{suffix}", None)))
    loss = kind()(x, y)
    show(name, loss, *torch.autograd.grad(loss, x))
show("miner", *miners.MultiSimilarityMiner()(x, y))
show("hardest", *miners.BatchHardMiner()(x, y))
for distance in (distances.CosineSimilarity(), distances.LpDistance(p=1), distances.SNRDistance()):
    show(type(distance).__name__, distance(x))
