"""Adapters to everything that can answer a call. Each package is one kind; none knows another."""

__all__ = ()
