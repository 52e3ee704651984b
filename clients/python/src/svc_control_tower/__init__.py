"""Client of the local evidence read API: every answer verified, nothing written."""

from .answers import ApiResult, ListPage, Metadata
from .canonical import JsonObject, JsonSyntaxError, JsonValue, canonical_bytes, digest, parse
from .client import ControlTowerClient
from .documents import Event, Run
from .errors import (
    ApiResponseError,
    ClientConfigurationError,
    ControlTowerClientError,
    IntegrityError,
    ProtocolError,
    TransportError,
)
from .retry import RetryPolicy
from .stream import EventStream, StreamedEvent

__all__ = [
    "ApiResponseError",
    "ApiResult",
    "ClientConfigurationError",
    "ControlTowerClient",
    "ControlTowerClientError",
    "Event",
    "EventStream",
    "IntegrityError",
    "JsonObject",
    "JsonSyntaxError",
    "JsonValue",
    "ListPage",
    "Metadata",
    "ProtocolError",
    "RetryPolicy",
    "Run",
    "StreamedEvent",
    "TransportError",
    "canonical_bytes",
    "digest",
    "parse",
]
