"""Everything from here to the first token, looked at before a run: nothing is started, nothing is changed."""
