LOCK=requirements.lock
