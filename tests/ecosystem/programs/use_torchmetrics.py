"""torchmetrics: metrics of classes, numbers and images."""

import torch
from numbers_made import array, show
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score, SpearmanCorrCoef

metrics = MetricCollection([MulticlassAccuracy(4), MulticlassF1Score(4), MulticlassAUROC(4)])
matrix, mean = MulticlassConfusionMatrix(4), MeanMetric()
for seed in range(3):
    scores, labels = torch.tensor(array(20, 4, seed=seed)).softmax(1), torch.tensor(array(20, seed=seed, low=0, high=4))
    metrics.update(scores, labels)
    matrix.update(scores, labels)
    mean.update(scores[:, 0])
for name, value in sorted(metrics.compute().items()):
    show(name, value)
show("matrix", matrix.compute(), mean.compute())
a, b = torch.tensor(array(50)), torch.tensor(array(50) + 0.3 * array(50, seed=1))
for metric in (MeanSquaredError(), PearsonCorrCoef(), R2Score(), SpearmanCorrCoef()):
    show(type(metric).__name__, metric(a.float(), b.float()))
x, y = torch.tensor(array(2, 3, 32, 32)).float().sigmoid(), torch.tensor(array(2, 3, 32, 32)).float().sigmoid().pow(1.1)
for metric in (PeakSignalNoiseRatio(data_range=1.0), StructuralSimilarityIndexMeasure(data_range=1.0)):
    show(type(metric).__name__, metric(x, y))
