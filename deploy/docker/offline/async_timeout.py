# redis needs this below Python 3.11.3, and Debian has 3.11.2, whose own timeout is the same.
from asyncio import timeout  # noqa: F401
