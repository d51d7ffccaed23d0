"""Training steps of two models on eight gloo ranks, by torch's moves and by plans: losses, gradients, weights and bytes."""

import contextlib
import unittest

import model
import ranks
from ranks import Count, DTensor, mesh_of, torch

import reshard.torch

RANKS, SIZES, STEPS = 8, (2, 4), 3


def trained(make, context, steps=STEPS):
    """Losses, local gradients of the first step, whole weights at the end, and the bytes that the second step receives."""
    net, loss = make(mesh_of(SIZES), steps)
    optimizer, seen, losses, gradients = torch.optim.SGD(net.parameters(), lr=1e-3), Count(), [], []
    with context:
        for step in range(steps):
            optimizer.zero_grad()
            with seen if step == 1 else contextlib.nullcontext():
                value = loss(step)
                value.backward()
            if step == 0:
                gradients = [one.grad._local_tensor.clone() for one in net.parameters()]
            optimizer.step()
            losses.append(float(value.to_local() if isinstance(value, DTensor) else value))
    weights = [one.full_tensor().detach() for one in net.parameters()]
    return losses, gradients, weights, seen.received


def apart(ours, theirs):
    """The greatest relative difference."""
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(ours, theirs) if b.numel())


def work(rank, name):
    """For each policy: differences of losses, gradients and weights, and the bytes by plans and by torch."""
    with ranks.all_to_all_of_gpus():
        make = getattr(model, name)
        theirs = trained(make, contextlib.nullcontext())
        found = {}
        for policy in ("bytes", "time"):
            ours = trained(make, reshard.torch.installed(policy))
            losses = max(abs(a - b) / abs(b) for a, b in zip(ours[0], theirs[0]))
            found[policy] = losses, apart(ours[1], theirs[1]), apart(ours[2], theirs[2]), ours[3], theirs[3]
        return found


class Model(unittest.TestCase):
    def test_a_transformer_block_receives_less_than_half(self):
        for rank in ranks.run(RANKS, work, "block"):
            for losses, gradients, weights, ours, theirs in rank.values():
                self.assertLess(losses, 1e-5)
                self.assertLess(gradients, 1e-4)
                self.assertLess(weights, 1e-5)
            self.assertLessEqual(rank["bytes"][3], 0.45 * theirs)

    def test_a_program_of_torchs_recipes_is_the_same_to_the_bit(self):  # no reduction of it is better by a plan
        for rank in ranks.run(RANKS, work, "sharded"):
            for losses, gradients, weights, ours, theirs in rank.values():
                self.assertEqual((losses, gradients, weights), (0, 0, 0))
            self.assertLessEqual(rank["bytes"][3], theirs)


if __name__ == "__main__":
    unittest.main()
