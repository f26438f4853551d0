"""Reads records and turns them into tables, reports and plots; drives nothing."""
