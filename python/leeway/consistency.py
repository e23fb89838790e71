"""How far workers may drift apart on a table (docs/consistency.md). Each is a text: str(SSP(3)) is "ssp:3"."""

from __future__ import annotations


class Consistency(str):
    """The text of a policy, also with a weight or delay compensation: "asp,weight=1/tau", "asp,dc=0.04"."""

    __slots__ = ()

    def weighted(self, weight: str) -> Consistency:
        """With pushes weighed by their staleness: "1/tau", "cut:4", ...

        >>> str(leeway.ASP().weighted("1/tau"))
        'asp,weight=1/tau'
        """
        return Consistency(f"{self},weight={weight}")

    def compensated(self, strength: float | str) -> Consistency:
        """With delay compensation (DC-ASGD: Zheng et al., ICML 2017): 0.04, or "adaptive:2/0.95"."""
        return Consistency(f"{self},dc={strength}")


def BSP() -> Consistency:
    """Pulls see the pushes of all workers up to the last iteration, and no others."""
    return Consistency("bsp")


def SSP(staleness: int) -> Consistency:
    """No worker pulls values that miss pushes older than so many iterations (Ho et al., NIPS 2013)."""
    return Consistency(f"ssp:{staleness}")


def ASP() -> Consistency:
    """Pushes take effect at once, and nobody waits."""
    return Consistency("asp")


def Backup(count: int, of: int, drop: bool = False) -> Consistency:
    """An iteration ends when `count` of `of` workers have ended it (Chen et al., 2016)."""
    return Consistency(f"backup:{count}/{of}" + (",drop" if drop else ""))


def DSSP(low: int, high: int) -> Consistency:
    """A bound between two, by measured speeds (Zhao et al., 2019)."""
    return Consistency(f"dssp:{low}-{high}")


def PSP(staleness: int, sample: int) -> Consistency:
    """The bound holds over a sample of workers (Wang et al., 2017)."""
    return Consistency(f"psp:{staleness}/{sample}")


def Softsync(n: int) -> Consistency:
    """An update for each workers / n pushes (Zhang et al., IJCAI 2016)."""
    return Consistency(f"softsync:{n}")


def FedBuff(buffer: int) -> Consistency:
    """An update for each `buffer` pushes (Nguyen et al., 2022)."""
    return Consistency(f"fedbuff:{buffer}")
