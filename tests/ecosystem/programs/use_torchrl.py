"""torchrl: losses of reinforcement learning with gradients, advantages, buffers, specs, environments and collectors."""

import os

os.environ["RL_LOGGING_LEVEL"] = "ERROR"  # its messages have the time

import torch
from numbers_made import array, fill, show
from tensordict import TensorDict
from tensordict.nn import TensorDictModule as Mod
from torchrl.data import (
    Bounded,
    Categorical,
    Composite,
    LazyMemmapStorage,
    LazyTensorStorage,
    OneHot,
    ReplayBuffer,
    SamplerWithoutReplacement,
    TensorDictReplayBuffer,
    Unbounded,
)
from torchrl.modules import (
    MLP,
    ConvNet,
    LSTMModule,
    NormalParamExtractor,
    ProbabilisticActor,
    QValueActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import A2CLoss, ClipPPOLoss, DDPGLoss, DQNLoss, SACLoss, SoftUpdate, TD3Loss
from torchrl.objectives.value import GAE
from torchrl.objectives.value.functional import (
    generalized_advantage_estimate,
    td_lambda_return_estimate,
    vec_generalized_advantage_estimate,
)


def f(*s, seed=0):
    return torch.tensor(array(*s, seed=seed)).float()


g = generalized_advantage_estimate(
    0.9, 0.8, f(3, 5, 1), f(3, 5, 1, seed=1), f(3, 5, 1, seed=2), torch.zeros(3, 5, 1, dtype=torch.bool)
)
show("gae", *g)
g = vec_generalized_advantage_estimate(
    0.9, 0.8, f(3, 5, 1), f(3, 5, 1, seed=1), f(3, 5, 1, seed=2), torch.zeros(3, 5, 1, dtype=torch.bool)
)
show("vgae", *g)
show("td", td_lambda_return_estimate(0.9, 0.8, f(3, 5, 1), f(3, 5, 1, seed=2), torch.zeros(3, 5, 1, dtype=torch.bool)))
net = torch.nn.Sequential(MLP(4, 4, num_cells=[8, 8]), NormalParamExtractor())
fill(net, 0.5)
actor = ProbabilisticActor(
    Mod(net, in_keys=["observation"], out_keys=["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = ValueOperator(fill(MLP(4, 1, num_cells=[8])), in_keys=["observation"])
td = TensorDict(
    {
        "observation": f(3, 5, 4),
        "action": f(3, 5, 2, seed=1).tanh() * 0.9,
        "action_log_prob": f(3, 5, seed=2),
        "next": {
            "observation": f(3, 5, 4, seed=4),
            "reward": f(3, 5, 1, seed=5),
            "done": torch.zeros(3, 5, 1, dtype=torch.bool),
            "terminated": torch.zeros(3, 5, 1, dtype=torch.bool),
        },
    },
    [3, 5],
)
adv = GAE(gamma=0.9, lmbda=0.8, value_network=critic)
adv(td)
show("adv", td["advantage"], td["value_target"])
loss = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.0, entropy_bonus=False)
out = loss(td)
show("ppo", out["loss_objective"], out["loss_critic"])
(out["loss_objective"] + out["loss_critic"]).backward()
show("ppog", *[p.grad for p in loss.parameters()])
loss = A2CLoss(actor, critic, entropy_bonus=False)
out = loss(td)
show("a2c", out["loss_objective"], out["loss_critic"])
q = QValueActor(fill(MLP(4, 3, num_cells=[8])), in_keys=["observation"], action_space="one_hot", spec=OneHot(3))
tq = TensorDict(
    {
        "observation": f(6, 4),
        "action": torch.eye(3)[torch.tensor([0, 1, 2, 0, 1, 2])],
        "next": {
            "observation": f(6, 4, seed=3),
            "reward": f(6, 1),
            "done": torch.zeros(6, 1, dtype=torch.bool),
            "terminated": torch.zeros(6, 1, dtype=torch.bool),
        },
    },
    [6],
)
dqn = DQNLoss(q, loss_function="l2", delay_value=True, action_space="one_hot")
out = dqn(tq)
out["loss"].backward()
show("dqn", out["loss"], *[p.grad for p in dqn.parameters() if p.grad is not None])
up = SoftUpdate(dqn, eps=0.9)
up.step()
show("soft", *list(dqn.target_value_network_params.flatten_keys().values()))
da = Mod(fill(MLP(4, 2, num_cells=[8])), in_keys=["observation"], out_keys=["action"])
dq = ValueOperator(fill(MLP(6, 1, num_cells=[8])), in_keys=["observation", "action"])
ddpg = DDPGLoss(da, dq)
tdd = tq.clone().exclude("td_error")
tdd["action"] = f(6, 2)
out = ddpg(tdd)
tdd = tdd.exclude("td_error")
show("ddpg", out["loss_actor"], out["loss_value"])
td3 = TD3Loss(da, dq, action_spec=Bounded(-1, 1, (2,)), num_qvalue_nets=2, policy_noise=0.0)
print(td3(tdd)["loss_actor"].shape)
sac = SACLoss(actor, dq, num_qvalue_nets=2, action_spec=Bounded(-1, 1, (2,)))
print(sorted(map(str, sac(tdd).keys())))
rb = TensorDictReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
rb.extend(tq)
print(len(rb), rb.sample().shape)
rb = ReplayBuffer(storage=LazyMemmapStorage(20), batch_size=6, sampler=SamplerWithoutReplacement())
rb.extend(tq)
show("rb", rb.sample()["observation"].sum())

spec = Composite(a=Bounded(0, 1, (3,)), b=Categorical(4), c=Unbounded((2,)))
r = spec.rand((5,))
print(r.shape, spec.is_in(r), spec["a"].project(torch.tensor([2.0, -1, 0.5])))
show("conv", fill(ConvNet(num_cells=[4, 4], in_features=3))(f(2, 3, 16, 16)))
lstm = LSTMModule(4, 6, in_key="observation", out_key="o")
fill(lstm)
print(lstm.make_tensordict_primer())
from torchrl.envs import Compose, GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.envs.utils import ExplorationType, check_env_specs, set_exploration_type

env = TransformedEnv(GymEnv("CartPole-v1"), Compose(StepCounter(), RewardSum()))
env.set_seed(0)
check_env_specs(env)
r = env.rollout(5)
print(r.shape, r["next", "step_count"].ravel().tolist())
from torchrl.collectors import Collector

c = Collector(env, None, frames_per_batch=20, total_frames=40)
for d in c:
    print(d.shape, d["observation"].shape)
from torchrl.envs.transforms import Resize

show("tr", Resize(6, 6)(TensorDict({"pixels": f(3, 8, 8)}, []))["pixels"])
with set_exploration_type(ExplorationType.DETERMINISTIC):
    show("act", actor(TensorDict({"observation": f(3, 4)}, [3]))["action"])
from torchrl.modules.distributions import (
    MaskedCategorical,
    TruncatedNormal,
)

show(
    "mc",
    MaskedCategorical(logits=f(2, 4), mask=torch.tensor([[1, 1, 0, 1], [1, 0, 1, 1]]).bool()).log_prob(
        torch.tensor([0, 2])
    ),
)
show(
    "tn",
    TanhNormal(f(3, 2), f(3, 2).exp()).log_prob(f(3, 2, seed=4).tanh() * 0.9),
    TruncatedNormal(f(3, 2), f(3, 2).exp()).log_prob(f(3, 2, seed=4).tanh() * 0.9),
)
