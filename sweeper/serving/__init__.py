"""One server for one launch: placed, started, proven ready, watched, stopped."""
