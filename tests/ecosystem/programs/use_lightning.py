"""lightning: fit with a checkpoint, validation, early stopping, prediction; the same weights from the checkpoint."""

import logging
import tempfile
import warnings

warnings.simplefilter("ignore")
logging.getLogger("lightning").setLevel(logging.ERROR)
import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from numbers_made import array, fill, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

for name in ("lightning.pytorch", "lightning.pytorch.utilities.rank_zero", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Model(L.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 3)))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, i):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train", loss)
        return loss

    def validation_step(self, batch, i):
        self.log("valid", nn.functional.cross_entropy(self(batch[0]), batch[1]))

    def predict_step(self, batch, i):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 0.05)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)]


L.seed_everything(1, verbose=False)
data = TensorDataset(torch.tensor(array(24, 4)).float(), torch.tensor(array(24, low=0, high=3)))
loader = DataLoader(data, 6)
with tempfile.TemporaryDirectory() as folder:
    keep = ModelCheckpoint(folder, monitor="valid")
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        callbacks=[keep, EarlyStopping("valid", patience=5)],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Model()
    trainer.fit(model, loader, loader)
    show("fit", trainer.callback_metrics["train"], trainer.callback_metrics["valid"], *model.parameters())
    again = Model.load_from_checkpoint(keep.best_model_path)
    show("again", *again.parameters())
    show("predict", torch.cat(trainer.predict(again, loader)))
fabric = L.Fabric(accelerator="cpu")
net, optimizer = fabric.setup(*(lambda m: (m, torch.optim.SGD(m.parameters(), 0.1)))(fill(nn.Linear(4, 1))))
loss = net(torch.tensor(array(5, 4)).float()).square().mean()
fabric.backward(loss)
optimizer.step()
show("fabric", loss, *net.parameters())
