"""A pole balanced on a cart, by trial and error: CartPole learnt by policy gradient.

    python examples/cartpole.py [--rounds N] [--seed N] [--out cartpole.png] [--device cpu]

It takes 3 s of processor time on two cores of an AMD EPYC.

The cart is pushed left or right fifty times a second, and an episode ends where the pole leans by more than 12 degrees,
where the cart leaves its track, or after 500 pushes. The motion is that of Barto, Sutton and Anderson ("Neuronlike
Adaptive Elements That Can Solve Difficult Learning Control Problems", IEEE Transactions on Systems, Man, and
Cybernetics, 1983, appendix), friction and all. 32 carts run side by side, as a batch of tensors, and a push of all of
them, network and physics, is captured. The network learns from how long the poles stood: REINFORCE (Williams, Machine
Learning 8, 1992) with a second network's guess of the return as the baseline (Sutton and Barto, "Reinforcement
Learning", 2nd edition, section 13.4). Checked: the mean return of 200 new episodes.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time

import norch
from norch import nn, optim
from norch.distributions import Categorical

try:
    import matplotlib

    matplotlib.use("Agg")  # draws into files, display or not
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f'This example needs {error.name}, which is not installed: pip install ".[examples]"')

REQUIRED = 475.0  # pushes of the 500 that an episode has at most
LONGEST = 500
CARTS = 32
DISCOUNT = 0.99  # of a reward, for each push that it is away

GRAVITY, CART, POLE, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5  # m / s², kg, kg, m
CART_FRICTION, POLE_FRICTION = 0.0005, 0.000002
FORCE, TICK = 10.0, 0.02  # N, s
TRACK, LEAN = 2.4, math.radians(12)  # where an episode ends


def start(count: int, device: str) -> norch.Tensor:
    """States (count, 4) near rest: position, speed, angle, angular speed."""
    return norch.rand(count, 4, device=device) * 0.1 - 0.05


def move(state: norch.Tensor, right: norch.Tensor) -> norch.Tensor:
    """The states (N, 4) a tick later, by Euler's method, for pushes to the right (N,), bool, or the left."""
    x, speed, angle, turning = state.unbind(1)
    force = norch.where(right, FORCE, -FORCE)
    sine, cosine, mass = angle.sin(), angle.cos(), CART + POLE
    push = (force + POLE * HALF_LENGTH * turning.square() * sine - CART_FRICTION * speed.sign()) / mass
    turn = GRAVITY * sine - cosine * push - POLE_FRICTION * turning / (POLE * HALF_LENGTH)
    turn = turn / (HALF_LENGTH * (4 / 3 - POLE * cosine.square() / mass))
    pull = push - POLE * HALF_LENGTH * turn * cosine / mass
    return state + TICK * norch.stack([speed, pull, turning, turn], 1)


def stands(state: norch.Tensor) -> norch.Tensor:
    """Which (N,) of the states (N, 4) are not the end of an episode."""
    return (state[:, 0].abs() <= TRACK) & (state[:, 2].abs() <= LEAN)


class Agent(nn.Module):
    """States (N, 4) to scores (N, 2) of a push to the left and to the right, and to guesses of the return (N,)."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def guess(self, state: norch.Tensor) -> norch.Tensor:
        return self.value(state).squeeze(-1) / (1 - DISCOUNT)  # 1 from the network is a pole that stands for ever

    @norch.capture
    def act(self, state: norch.Tensor, alive: norch.Tensor) -> tuple[norch.Tensor, norch.Tensor, norch.Tensor]:
        """The pushes (N,) that are drawn, the states (N, 4) after them, and which episodes (N,) still go on."""
        with norch.no_grad():
            chance = self.policy(state).softmax(1)[:, 1]
            right = norch.rand_like(chance) < chance
            state = norch.where(alive[:, None], move(state, right), state)
            return right, state, alive & stands(state)


def play(agent: Agent, state: norch.Tensor) -> tuple[norch.Tensor, norch.Tensor, norch.Tensor]:
    """Episodes from states (N, 4): all states (T + 1, N, 4), pushes (T, N), and where each went on (T + 1, N)."""
    alive = norch.ones(len(state), dtype=norch.bool, device=state.device)
    states, pushes, going = [state], [], [alive]
    while len(pushes) < LONGEST and (len(pushes) % 20 or alive.any()):  # asks now and then, as asking waits
        right, state, alive = agent.act(state, alive)
        states.append(state)
        pushes.append(right)
        going.append(alive)
    return norch.stack(states), norch.stack(pushes), norch.stack(going)


def learn(agent: Agent, optimizer: optim.Optimizer) -> list[float]:
    """A round of episodes, and one step up the gradient; how long each of them lasted."""
    states, pushes, going = play(agent, start(CARTS, str(next(agent.parameters()).device)))
    reward = going[:-1].float()  # 1 for each push
    with norch.no_grad():
        follows = agent.guess(states[-1]) * going[-1]  # what those would still get that stand at the end
        returns = []
        for now in reward.flip(0):
            follows = now + DISCOUNT * follows
            returns.append(follows)
    target = norch.stack(returns[::-1])
    guess = agent.guess(states[:-1])
    advantage = (target - guess.detach()) * reward
    spread = (advantage.square().sum() / reward.sum()).sqrt()
    taken = Categorical(logits=agent.policy(states[:-1]), validate_args=False).log_prob(pushes.long())
    count = reward.sum()
    loss = -(advantage / spread * taken).sum() / count
    error = ((guess - target) * (1 - DISCOUNT)).square() * reward
    optimizer.zero_grad()
    (loss + error.sum() / count).backward()
    optimizer.step()
    return reward.sum(0).tolist()


def draw(path: str, lengths: list[list[float]], states: norch.Tensor, agent: Agent) -> None:
    """The learning curve, ten of the last episodes, and what the policy does for each lean."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    rounds = range(1, len(lengths) + 1)
    means = [sum(values) / len(values) for values in lengths]
    for i in range(CARTS):
        left.plot(rounds, [values[i] for values in lengths], ".", color="#1f77b4", alpha=0.15, markersize=3)
    left.plot(rounds, means, color="#d62728", label="mean of the round")
    left.set(xlabel="round", ylabel="pushes", title=f"How long the pole stood, {CARTS} episodes a round")
    left.legend(loc="lower right")
    seconds = [TICK * i for i in range(len(states))]
    for i in range(10):
        middle.plot(seconds, (states[:, i, 2] * (180 / math.pi)).tolist(), linewidth=0.7)
    middle.axhline(12, color="black", linestyle=":")
    middle.axhline(-12, color="black", linestyle=":")
    middle.set(xlabel="seconds", ylabel="degrees", title="How the pole leans, when learnt", ylim=(-13, 13))
    angle, turning = norch.meshgrid(norch.linspace(-LEAN, LEAN, 60), norch.linspace(-2, 2, 60), indexing="xy")
    places = norch.stack([norch.zeros_like(angle), norch.zeros_like(angle), angle, turning], -1).to(states.device)
    with norch.no_grad():
        chance = agent.policy(places).softmax(-1)[..., 1]
    seen = right.imshow(
        chance.tolist(), origin="lower", extent=(-12, 12, -2, 2), aspect="auto", cmap="RdBu", vmin=0, vmax=1
    )
    right.set(xlabel="degrees", ylabel="radians a second", title="Chance of a push to the right")
    figure.colorbar(seen, ax=right)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Learns, tests, draws and checks; the exit status."""
    parser = argparse.ArgumentParser(description="Learns to balance a pole on a cart.")
    parser.add_argument("--rounds", type=int, default=120, help=f"of {CARTS} episodes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, starts and pushes (default: 0)")
    parser.add_argument("--out", metavar="PNG", default="cartpole.png", help="the picture (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where to learn (default: cpu)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    norch.manual_seed(options.seed)
    try:
        agent = Agent().to(options.device)
    except norch.DeviceError as error:
        sys.exit(f"--device {options.device}: {error}")
    optimizer = optim.Adam(agent.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=options.rounds)
    began = time.perf_counter()
    lengths = []
    for number in range(1, options.rounds + 1):
        lengths.append(learn(agent, optimizer))
        schedule.step()
        if number % 20 == 0:
            print(f"round {number:3d}, mean return {sum(lengths[-1]) / CARTS:.1f}")
    print(f"learnt in {time.perf_counter() - began:.1f} s")

    states, _, going = play(agent, start(200, options.device))
    mean = going[:-1].float().sum(0).mean().item()
    draw(options.out, lengths, states, agent)
    print(f"wrote {os.path.abspath(options.out)}")
    print(f"mean return of 200 new episodes: {mean:.1f}")
    if mean < REQUIRED:
        print(f"it should be at least {REQUIRED:.0f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
