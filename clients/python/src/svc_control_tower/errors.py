"""What a call can raise. Every class derives from ControlTowerClientError."""

from __future__ import annotations

from .canonical import JsonObject

__all__ = [
    "ApiResponseError",
    "ClientConfigurationError",
    "ControlTowerClientError",
    "IntegrityError",
    "ProtocolError",
    "TransportError",
]


class ControlTowerClientError(Exception):
    """The root of the tree."""


class ClientConfigurationError(ControlTowerClientError, ValueError):
    """An unsafe or invalid setup. Nothing has been sent."""


class TransportError(ControlTowerClientError):
    """The exchange could not complete, a stream stalled or ended without its marker."""


class ProtocolError(ControlTowerClientError):
    """The answer breaks the contract, so nothing in it can be trusted."""

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id
        """The answer's id, where it had a well-formed one."""


class IntegrityError(ProtocolError):
    """A digest does not verify: what came is not what was recorded."""


class ApiResponseError(ControlTowerClientError):
    """The server answered with an error envelope. Branch on ``code``, never on ``message``."""

    def __init__(
        self,
        *,
        status_code: int,
        code: str,
        message: str,
        retryable: bool,
        details: JsonObject | None,
        request_id: str,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(f"{status_code} {code}: {message} (request {request_id})")
        self.status_code = status_code
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds the server asks to wait, if it said so."""
