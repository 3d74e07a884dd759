"""Fixtures of the tests that run real services."""

from tests.stack.broker import broker

__all__ = ["broker"]
