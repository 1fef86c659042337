"""Protocols in front of the gate. A surface turns bytes into a call and shows the outcome; it decides nothing."""

__all__ = ()
