"""Servers that mean no good, started for real, and a bridge that has to stay well behind them."""
