"""The one version of both distributions, `handbell` and `handbell-emit`."""

__version__ = "0.1.0"
