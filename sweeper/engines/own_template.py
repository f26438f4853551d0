"""What engines share whose server applies the model's chat template itself."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.spec import ServerConfig


class AppliesTemplates:
    """The part of an `Engine` on chat templates, for a server that is sent messages."""

    def template_argv(
        self, command: Sequence[str], config: ServerConfig, model_path: str, texts: Sequence[str]
    ) -> tuple[str, ...]:
        """Empty: the server applies the template itself."""
        return ()

    def parse_template(self, output: str) -> list[tuple[int, ...]]:
        """Never asked. Raises ValueError."""
        raise ValueError("the server applies the chat template itself")
