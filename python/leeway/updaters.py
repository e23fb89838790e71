"""Updaters: the formulas by which pushes change what servers hold (docs/updaters.md).

Names, parameters and defaults are those of torch.optim where it has the same formula.
"""

from __future__ import annotations


class Updater:
    """An updater by its name and parameters; also one of your own that servers have registered.

    >>> str(leeway.Updater("signs", step=0.1))
    'signs:step=0.1'
    """

    def __init__(self, name: str, **parameters: float | None):
        self.name = name
        self.parameters = {key: float(value) for key, value in parameters.items() if value is not None}

    def __str__(self) -> str:
        return self.name + "".join(
            (":" if i == 0 else ",") + f"{key}={value!r}"
            for i, (key, value) in enumerate(self.parameters.items())
        )

    def __repr__(self) -> str:
        return f"leeway.Updater({str(self)!r})"


class Add(Updater):
    """w + g, also of integers."""

    def __init__(self) -> None:
        super().__init__("add")


class Assign(Updater):
    """g: the value itself is pushed."""

    def __init__(self) -> None:
        super().__init__("assign")


class SGD(Updater):
    """Stochastic gradient descent; with momentum that of Sutskever et al. 2013, or Nesterov's."""

    def __init__(
        self,
        lr: float = 0.001,
        momentum: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ):
        if nesterov and not momentum:
            raise ValueError("nesterov needs a momentum")
        if momentum:
            name = "nesterov" if nesterov else "momentum"
            super().__init__(name, learning_rate=lr, momentum=momentum, weight_decay=weight_decay)
        else:
            super().__init__("sgd", learning_rate=lr, weight_decay=weight_decay)


class Adagrad(Updater):
    """Duchi, Hazan and Singer 2011."""

    def __init__(
        self,
        lr: float = 0.01,
        eps: float = 1e-10,
        initial_accumulator: float = 0,
        weight_decay: float = 0,
    ):
        super().__init__(
            "adagrad",
            learning_rate=lr,
            epsilon=eps,
            initial_accumulator=initial_accumulator,
            weight_decay=weight_decay,
        )


class RMSprop(Updater):
    """Tieleman and Hinton 2012."""

    def __init__(self, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8, momentum: float = 0):
        super().__init__("rmsprop", learning_rate=lr, alpha=alpha, epsilon=eps, momentum=momentum)


class Adam(Updater):
    """Kingma and Ba 2015, algorithm 1."""

    def __init__(
        self,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ):
        super().__init__(
            "adam",
            learning_rate=lr,
            beta1=betas[0],
            beta2=betas[1],
            epsilon=eps,
            weight_decay=weight_decay,
        )


class AdamW(Updater):
    """Loshchilov and Hutter 2019, algorithm 2."""

    def __init__(
        self,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        super().__init__(
            "adamw",
            learning_rate=lr,
            beta1=betas[0],
            beta2=betas[1],
            epsilon=eps,
            weight_decay=weight_decay,
        )


class FTRL(Updater):
    """FTRL-Proximal: McMahan et al. 2013, algorithm 1."""

    def __init__(self, lr: float = 0.1, beta: float = 1, l1: float = 0, l2: float = 0):
        super().__init__("ftrl", learning_rate=lr, beta=beta, l1=l1, l2=l2)
