"""Leeway in BSP: each step takes the mean of all workers' gradients, as an all-reduce does."""
import leeway
import mlp_leeway

serve = mlp_leeway.serve


def train(rank: int, place, trainer) -> None:
    mlp_leeway.train(rank, place, trainer, leeway.BSP())
