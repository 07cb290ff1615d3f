"""norch.compile on a CUDA device: results and gradients are those of the model, bit for bit."""

import pytest
from test_cuda_capture import MODELS

import norch
from norch import optim

pytestmark = pytest.mark.skipif(not norch.cuda.is_available(), reason="needs a CUDA device, or the simulated one")


def train(name, compiled, waiting):
    """What eight steps leave, with several calls before each backward()."""
    norch.manual_seed(3)
    model = MODELS[name]().to("cuda")
    called = norch.compile(model, fullgraph=True) if compiled else model
    optimizer, found = optim.NAdam(model.parameters()), []
    for _ in range(8):
        xs = [norch.randn(4, 5, 3, device="cuda").requires_grad_() for _ in range(waiting)]
        loss = sum(called(x).square().sum() for x in xs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append([loss.item(), *(x.grad.tolist() for x in xs), *(b.tolist() for b in model.buffers())])
        found.append([p.grad.tolist() for p in model.parameters()])
    return found, called.forward.recordings() if compiled else 0


@pytest.mark.parametrize("waiting", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_training(name: str, waiting: int) -> None:
    eager, _ = train(name, False, waiting)
    found, recordings = train(name, True, waiting)
    assert found == eager and recordings == 1
