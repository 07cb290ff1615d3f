"""accelerate: a training loop, gathered gradients, empty and offloaded weights."""

import torch
from accelerate import Accelerator, init_empty_weights
from numbers_made import array, fill, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = fill(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 4)
data = DataLoader(TensorDataset(torch.tensor(array(12, 4)).float(), torch.tensor(array(12, 1, seed=1)).float()), 3)
model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
for _ in range(2):
    for x, y in data:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    show("loss", loss, accelerator.gather(loss))
show("weights", *accelerator.unwrap_model(model).state_dict().values())
with init_empty_weights():
    empty = nn.Linear(1000, 1000)
print("empty", empty.weight.device.type, tuple(empty.weight.shape))
