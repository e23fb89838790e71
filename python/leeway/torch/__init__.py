"""Leeway for PyTorch: parameters of a model, embeddings and local training on the servers of a cluster.

    model = Model()
    opt = leeway.torch.DistributedOptimizer(
        model, worker=w, updater=leeway.SGD(0.1, momentum=0.9), consistency=leeway.SSP(2), codec="onebit"
    )
    for batch in batches:
        opt.zero_grad()
        loss(model(batch)).backward()
        opt.step()

- DistributedOptimizer pushes gradients and pulls parameters.
- Embedding and EmbeddingBag keep their rows in a sparse table; only those of a batch travel.
- DiLoCo and LocalSGD train with any optimizer of torch, and exchange every so many steps.
- save and load: a model's state in a safetensors file. pull: a model's values as servers have them.

Parameters may be on a GPU; they travel by copies in pinned memory. That is not tested on one.
"""

from leeway.torch._values import pull, to_host
from leeway.torch.embedding import Embedding, EmbeddingBag
from leeway.torch.files import load, save
from leeway.torch.local_sgd import DiLoCo, LocalSGD
from leeway.torch.optimizer import DistributedOptimizer

__all__ = [
    "DiLoCo", "DistributedOptimizer", "Embedding", "EmbeddingBag", "LocalSGD", "load", "pull", "save", "to_host",
]  # fmt: skip
