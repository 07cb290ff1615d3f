"""ignite: an engine with metrics, handlers and a checkpoint."""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, ModelCheckpoint
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from numbers_made import array, fill, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.tensor(array(20, 4)).float(), torch.tensor(array(20, low=0, high=3))), 5)
model = fill(nn.Linear(4, 3))
criterion = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.1), criterion)
evaluator = create_supervised_evaluator(
    model, {"accuracy": Accuracy(), "loss": Loss(criterion), "matrix": ConfusionMatrix(3)}
)
RunningAverage(output_transform=lambda x: x).attach(trainer, "running")
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer))
with tempfile.TemporaryDirectory() as folder:
    trainer.add_event_handler(Events.EPOCH_COMPLETED, ModelCheckpoint(folder, "m", n_saved=1), {"model": model})

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(loader)
        show(
            "epoch",
            engine.state.metrics["running"],
            *(evaluator.state.metrics[k] for k in ("accuracy", "loss", "matrix")),
        )

    trainer.run(loader, 3)
show("weights", model.weight)
