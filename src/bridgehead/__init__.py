"""One secure crossing from any AI agent to every tool its owner has."""

__version__ = "0.1.0"
__all__ = ["__version__"]
