"""A network on Fashion-MNIST by DistributedOptimizer, beside the same training by torch in one process.

    python torch_mlp.py --workers 2 --epochs 5

Workers may be two iterations apart (SSP), and gradients and parameters travel in one bit an element, with
error feedback on both ends. Each of w workers takes the w-th part of each batch.
"""

import argparse

import leeway
import leeway.torch
import torch
from fashion_mnist import accuracy, mlp, read


def batches(images, labels, size, epochs, part=0, parts=1):
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(size):
            mine = rows[part::parts]
            yield images[mine], labels[mine]


def epochs_of(model, optimizer, data):
    loss = torch.nn.CrossEntropyLoss()
    for images, labels in data:
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()


def train(worker, given):
    torch.set_num_threads(1)
    images, labels = read("train", given.rows)
    model = mlp()
    optimizer = leeway.torch.DistributedOptimizer(
        model, worker=worker, updater=leeway.SGD(given.lr), consistency=leeway.SSP(2),
        codec=given.codec, overlap=True,
    )  # fmt: skip
    epochs_of(model, optimizer, batches(images, labels, 64, given.epochs, worker.rank, worker.num_workers))
    worker.barrier()
    result = accuracy(model), worker.stats()["bytes_pushed"]
    worker.barrier()
    return result


def alone(given):
    images, labels = read("train", given.rows)
    model = mlp()
    epochs_of(model, torch.optim.SGD(model.parameters(), given.lr), batches(images, labels, 64, given.epochs))
    return accuracy(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--codec", default="onebit")
    given = parser.parse_args()
    results = leeway.launch(train, given, workers=given.workers, servers=1)
    print(
        f"{given.workers} workers, ssp:2, {given.codec}: accuracy {results[0][0]:.2f} %, {results[0][1]} bytes pushed each"
    )
    print(f"torch in one process: accuracy {alone(given):.2f} %")
