"""torcheval: metrics of classes; the confusion matrix and what is made of it are sparse tensors."""

import torch
from numbers_made import array, show
from torcheval.metrics import (
    BinaryAUROC,
    Mean,
    MeanSquaredError,
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassPrecision,
    MulticlassRecall,
    R2Score,
)
from torcheval.metrics import functional as F

scores, wanted = torch.tensor(array(40, 5)).float(), torch.tensor(array(40, low=0, high=5))
for normalize in (None, "pred", "true", "all"):
    metric = MulticlassConfusionMatrix(5, normalize=normalize)
    for part in range(0, 40, 10):
        metric.update(scores[part : part + 10], wanted[part : part + 10])
    show(f"confusion {normalize}", metric.compute())
show("binary", F.binary_confusion_matrix((scores[:, 0] > 0).long(), wanted % 2))
for metric in (
    MulticlassAccuracy(average="macro", num_classes=5),
    MulticlassF1Score(average=None, num_classes=5),
    MulticlassPrecision(average="weighted", num_classes=5),
    MulticlassRecall(average="macro", num_classes=5),
):
    show(type(metric).__name__, metric.update(scores, wanted).compute())
show("AUROC", BinaryAUROC().update(scores[:, 0], wanted % 2).compute())
show("numbers", MeanSquaredError().update(scores[:, 0], scores[:, 1]).compute())
show("R2", R2Score().update(scores[:, 0], scores[:, 1]).compute(), Mean().update(scores).compute())
