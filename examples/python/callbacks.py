"""Callbacks by which the trainers of Lightning and of Hugging Face train with DiLoCo.

The classes have the methods that `lightning.pytorch.Callback` and `transformers.TrainerCallback` have; derive
them from these where the packages are there. The loop below calls them as the trainers do.
"""

import argparse

import leeway
import leeway.torch
import torch
from fashion_mnist import accuracy, mlp, read


class LightningDiLoCo:
    """For lightning.pytorch: Trainer(callbacks=[LightningDiLoCo(worker, steps=100)])."""

    def __init__(self, worker, **options):
        self.worker, self.options = worker, options
        self.diloco = None

    def on_fit_start(self, trainer, pl_module):
        self.diloco = leeway.torch.DiLoCo(pl_module, worker=self.worker, **self.options)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.diloco.step()

    def on_fit_end(self, trainer, pl_module):
        self.diloco.finish()


class TrainerDiLoCo:
    """For transformers: Trainer(model, args, callbacks=[TrainerDiLoCo(worker, steps=100)])."""

    def __init__(self, worker, **options):
        self.worker, self.options = worker, options
        self.diloco = None

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.diloco = leeway.torch.DiLoCo(model, worker=self.worker, **self.options)

    def on_step_end(self, args, state, control, **kwargs):
        self.diloco.step()

    def on_train_end(self, args, state, control, **kwargs):
        self.diloco.finish()


def fit(model, callback, images, labels, hugging_face):
    """What the trainers do, in short."""
    optimizer, loss = torch.optim.SGD(model.parameters(), 0.1), torch.nn.CrossEntropyLoss()
    if hugging_face:
        callback.on_train_begin(None, None, None, model=model)
    else:
        callback.on_fit_start(None, model)
    for number, rows in enumerate(torch.arange(len(images)).split(64)):
        optimizer.zero_grad()
        loss(model(images[rows]), labels[rows]).backward()
        optimizer.step()
        if hugging_face:
            callback.on_step_end(None, None, None, model=model)
        else:
            callback.on_train_batch_end(None, model, None, rows, number)
    if hugging_face:
        callback.on_train_end(None, None, None)
    else:
        callback.on_fit_end(None, model)


def train(worker, given):
    torch.set_num_threads(1)
    images, labels = read("train", given.rows)
    mine = slice(worker.rank, None, worker.num_workers)
    results = []
    for kind in (LightningDiLoCo, TrainerDiLoCo):
        model = mlp()
        callback = kind(worker, steps=20, name=kind.__name__)
        fit(model, callback, images[mine], labels[mine], hugging_face=kind is TrainerDiLoCo)
        results.append((kind.__name__, accuracy(model)))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=60000)
    given = parser.parse_args()
    for name, found in leeway.launch(train, given, workers=given.workers)[0]:
        print(f"{name}: accuracy {found:.1f} %")
