"""pyro: densities of models, variational inference and NUTS; what is random is compared as a distribution."""

import pyro
import pyro.distributions as dist
import torch
from numbers_made import array, show
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta, AutoNormal
from pyro.optim import Adam

data = torch.tensor(array(40)).float() * 0.5 + 2


def model():
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(data)):
        pyro.sample("obs", dist.Normal(mean, scale), obs=data)


given = pyro.condition(model, data={"mean": torch.tensor(1.5), "scale": torch.tensor(0.7)})
trace = pyro.poutine.trace(given).get_trace()
show("density", trace.log_prob_sum())
pyro.set_rng_seed(1)
guide = AutoDelta(
    model,
    init_loc_fn=pyro.infer.autoguide.init_to_value(values={"mean": torch.tensor(0.0), "scale": torch.tensor(1.0)}),
)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
losses = [svi.step() for _ in range(60)]
show("map", losses[0], losses[-1], guide.median()["mean"], guide.median()["scale"])
pyro.clear_param_store()
guide = AutoNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
for _ in range(400):
    svi.step()
print("svi", round(float(guide.median()["mean"]), 0))
mcmc = MCMC(NUTS(model), num_samples=60, warmup_steps=60, disable_progbar=True)
mcmc.run()
print("nuts", round(float(mcmc.get_samples()["mean"].mean()), 0))
