"""An updater, a codec and a request handler of your own, in Python, on servers that leeway.launch starts.

python examples/python/own_server.py
"""

import leeway
import numpy as np


def register():
    """Runs in every server and worker before it joins the cluster."""

    @leeway.updater("lion")
    class Lion:
        """Chen et al., 2023, arXiv 2302.06675, algorithm 2: steps of one size, by the sign of a momentum."""

        state = 1  # the momentum

        def __init__(self, learning_rate=0.01, beta1=0.9, beta2=0.99):
            self.learning_rate, self.beta1, self.beta2 = learning_rate, beta1, beta2

        def update(self, value, gradient, state, step, lr):
            momentum = state[0]
            value -= self.learning_rate * np.sign(self.beta1 * momentum + (1 - self.beta1) * gradient)
            momentum[:] = self.beta2 * momentum + (1 - self.beta2) * gradient

    @leeway.codec("byte")
    class Byte:
        """Each element in 8 bits, by the largest one of the message or row."""

        bytes_for_element = 5  # a row of one element has a scale of its own

        def encode(self, values):
            scale = np.abs(values).max(axis=-1, keepdims=True) / 127 + 1e-30
            return scale.astype(np.float32).tobytes() + np.round(values / scale).astype(np.int8).tobytes()

        def decode(self, data, shape):
            rows = int(np.prod(shape[:-1]))
            scale = np.frombuffer(data, np.float32, rows).reshape(*shape[:-1], 1)
            return scale * np.frombuffer(data, np.int8, offset=4 * rows).reshape(shape)

    calls = 0

    @leeway.handler("count")
    def count(caller, request):
        nonlocal calls
        calls += 1
        return f"call {calls} of server {caller.server_rank}: {request.decode()}".encode()


def train(worker):
    target = np.linspace(-1, 1, 1000, dtype=np.float32)
    table = worker.table("w", shape=1000, updater=leeway.Updater("lion", beta1=0.5, beta2=0.5), codec="byte")
    out = np.zeros(1000, np.float32)
    for _ in worker.iterations(200):
        ticket = table.push_pull(out - target, out=out)
        worker.clock()
        ticket.wait()
    return float(np.abs(out - target).max()), worker.call(0, "count", b"hello")


if __name__ == "__main__":
    error, answer = leeway.launch(train, workers=2, setup=register)[0]
    print(f"largest error {error:.3f}; {answer.decode()}")
    assert error < 0.05
