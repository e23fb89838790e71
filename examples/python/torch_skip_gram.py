"""Word vectors by skip-gram with negative sampling (Mikolov et al., 2013), their rows on servers.

    python torch_skip_gram.py --workers 2 --words 1000000

The text is made here: words come in topics, so that the vectors of words of a topic come to be alike. Only the
rows of a batch's words travel; those of the next batch are pulled while this one is computed.
"""

import argparse
import time

import leeway
import leeway.torch
import torch
import torch.nn.functional as F

TOPIC = 100  # words of a topic


def pairs(words, batch, negatives, generator):
    """Words, a neighbour of each, and words that are none."""
    common = torch.rand(batch, generator=generator) ** 4  # few words are common
    center = (common * words).long()
    near = center // TOPIC * TOPIC + torch.randint(TOPIC, (batch,), generator=generator)
    other = torch.randint(words, (batch, negatives), generator=generator)
    return center, torch.cat([near.clamp(max=words - 1)[:, None], other], 1)


def train(worker, given):
    torch.set_num_threads(1)
    options = {
        "worker": worker,
        "updater": leeway.Adagrad(0.05),
        "consistency": leeway.SSP(1),
        "average": False,
    }
    words = leeway.torch.Embedding(
        given.words, given.dim, name="words", initializer="uniform:-0.1,0.1", **options
    )
    contexts = leeway.torch.Embedding(
        given.words, given.dim, name="contexts", initializer="uniform:-0.1,0.1,seed=1", **options
    )
    generator = torch.Generator().manual_seed(worker.rank)
    following = pairs(given.words, given.batch, given.negatives, generator)
    start, losses = time.monotonic(), []
    for _ in worker.iterations(given.steps):
        center, context = following
        following = pairs(given.words, given.batch, given.negatives, generator)
        vector, others = words(center), contexts(context)
        words.prefetch(following[0])
        contexts.prefetch(following[1])
        score = torch.einsum("bd,bnd->bn", vector, others)
        truth = torch.zeros_like(score)
        truth[:, 0] = 1
        loss = F.binary_cross_entropy_with_logits(score, truth, reduction="sum") / given.batch
        loss.backward()
        losses.append(loss.item())
    words.wait()
    contexts.wait()
    return losses, given.steps * given.batch / (time.monotonic() - start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--negatives", type=int, default=4)
    given = parser.parse_args()
    losses, speed = leeway.launch(train, given, workers=given.workers, servers=2)[0]
    first, last = losses[0], sum(losses[-10:]) / len(losses[-10:])
    print(f"loss {first:.3f} at first, {last:.3f} at last; {speed:.0f} pairs a second and worker")
