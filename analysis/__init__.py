"""Reads studies and drives nothing: tables and reports. In a notebook: `from analysis import load`."""

from analysis.loading import LoadedStudy, load

__all__ = ["LoadedStudy", "load"]
