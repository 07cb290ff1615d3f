"""demucs: small separators of sound with transformers of their own layers, forward and backward, and in windows."""

import torch
from demucs.apply import apply_model
from demucs.demucs import Demucs
from demucs.htdemucs import HTDemucs
from demucs.transformer import CrossTransformerEncoder
from numbers_made import array, fill, show

sound = torch.tensor(array(1, 2, 4000), dtype=torch.float32)
model = fill(Demucs(["a", "b"], channels=8, depth=3, lstm_layers=1)).eval()
out = model(sound)
out.square().mean().backward()
show("Demucs", out, *[p.grad for p in list(model.parameters())[::7]])
options = {"channels": 8, "depth": 2, "nfft": 256, "bottom_channels": 0, "segment": 1, "samplerate": 4000}
model = fill(HTDemucs(["a", "b"], t_layers=2, t_heads=2, **options)).eval()
show("HTDemucs", model(sound))
with torch.no_grad():
    show("windows", apply_model(model, torch.cat([sound, sound[..., :2000]], -1), shifts=0, split=True, overlap=0.25))
both = fill(CrossTransformerEncoder(dim=8, num_heads=2, num_layers=3, dropout=0.0)).eval()
x, y = both(torch.tensor(array(1, 8, 3, 5), dtype=torch.float32), torch.tensor(array(1, 8, 7), dtype=torch.float32))
(x.square().mean() + y.square().mean()).backward()
show("transformer", x, y, *[p.grad for p in list(both.parameters())[::9]])
