"""Real llama.cpp servers, as the engine's own tests start them."""

from __future__ import annotations

from tests.engines.conftest import model as model
from tests.engines.conftest import real as real
