"""MLflow, behind one door: a view of the study that can be rebuilt at any time and never holds up the sweep."""

from sweeper.tracking.place import view_name
from sweeper.tracking.tracker import StudyView, SyncReport, Tracker, become_ui

__all__ = ["StudyView", "SyncReport", "Tracker", "become_ui", "view_name"]
