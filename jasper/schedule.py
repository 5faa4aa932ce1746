"""How Jasper's learning rate rises, stays and falls."""

from common.training import EpochPolicy, Schedule

LR_POLICIES = ("exponential", "polynomial", "legacy")


def jasper_schedule(
    learning_rate: float,
    *,
    policy: str,
    warmup_epochs: int,
    hold_epochs: int,
    n_epochs: int,
    min_lr: float,
    gamma: float,
) -> EpochPolicy:
    """Linear warm-up, the full rate for ``hold_epochs``, then a fall that ends at ``min_lr``.

    The ``exponential`` policy multiplies by ``gamma`` each epoch, ``polynomial`` falls to ``min_lr`` with the square
    of the share of updates that are left of ``n_epochs``, and ``legacy`` likewise to 0, but not below ``min_lr``. The
    original gives an update the rate of the one before it, and the first update the full one; here each has its own.
    """

    def over(steps_per_epoch: int) -> Schedule:
        warmup_steps = warmup_epochs * steps_per_epoch
        full_until = warmup_steps + hold_epochs * steps_per_epoch
        falling = max(n_epochs * steps_per_epoch - full_until, 1)

        def rate(iteration: int, epoch: int) -> float:
            if iteration < warmup_steps:
                return max(learning_rate * (iteration + 1) / (warmup_steps + 1), min_lr)
            if iteration < full_until:
                return max(learning_rate, min_lr)
            if policy == "exponential":
                return max(learning_rate * gamma ** (epoch - warmup_epochs - hold_epochs), min_lr)
            left = max(full_until + falling - iteration, 0) / falling
            if policy == "legacy":
                return max(learning_rate * left**2, min_lr)
            return min_lr + max(learning_rate - min_lr, 0.0) * left**2

        return rate

    if policy not in LR_POLICIES:
        raise ValueError(f"learning-rate policy {policy!r}: expected one of {', '.join(LR_POLICIES)}")
    return EpochPolicy(over)
