"""When a read is tried again, and how long to wait before."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from .errors import ApiResponseError, ClientConfigurationError, TransportError

__all__ = ["MAX_RETRY_AFTER", "RetryPolicy"]

MAX_RETRY_AFTER = 60
"""Seconds beyond which a Retry-After ends the attempts: no answer may park a program for hours."""

_LONGEST = 1e8  # seconds; sleeping refuses what overflows its C type


@dataclass(frozen=True)
class RetryPolicy:
    """Full jitter: waits are drawn from 0 to a bound.

    The bound is ``base_delay``, doubled per attempt, at most ``max_delay``.

    Only idempotent reads are tried again, after a retryable error envelope or a TransportError;
    never an inspection, a stream or a digest that does not verify.
    """

    max_attempts: int = 3
    """How often a call is made at most, the first included."""
    base_delay: float = 0.2
    """Seconds."""
    max_delay: float = 5.0
    """Seconds."""
    honor_retry_after: bool = True
    """Whether a wait is never shorter than the server's Retry-After."""

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise ClientConfigurationError("max_attempts must be an integer")
        if self.max_attempts < 1:
            raise ClientConfigurationError("max_attempts must be at least 1")
        for name in ("base_delay", "max_delay"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ClientConfigurationError(f"{name} must be a number of seconds")
            # An integer may be beyond every float, and is compared as it is.
            infinite = isinstance(value, float) and not math.isfinite(value)
            if infinite or not 0 <= value <= _LONGEST:
                raise ClientConfigurationError(f"{name} must be from 0 to {_LONGEST:.0f} seconds")
        if self.max_delay < self.base_delay:
            raise ClientConfigurationError("max_delay must not be less than base_delay")
        if not isinstance(self.honor_retry_after, bool):
            raise ClientConfigurationError("honor_retry_after must be True or False")

    def wait(self, attempt: int, err: Exception) -> float | None:
        """Seconds before the next attempt after this one (counted from 1) failed, None for none."""
        if attempt >= self.max_attempts:
            return None
        least = 0.0
        if isinstance(err, ApiResponseError):
            if not err.retryable:
                return None
            if self.honor_retry_after and err.retry_after is not None:
                if err.retry_after > MAX_RETRY_AFTER:
                    return None
                least = float(err.retry_after)
        elif not isinstance(err, TransportError):
            return None
        # 2**62 of the smallest delay is beyond any max_delay worth naming; more would overflow.
        most = min(self.max_delay, self.base_delay * 2 ** min(attempt - 1, 62))
        return max(random.uniform(0, most), least)
