"""The templates of the page and of its drawings: everything that is put into one is escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("analysis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, **values: object) -> Markup:
    """A template of the folder `templates`, filled; values are escaped unless they are Markup themselves."""
    return Markup(_environment().get_template(template).render(**values))


def source(name: str) -> Markup:
    """A file of the folder `templates` as it is: our own style sheet."""
    loader = _environment().loader
    assert loader is not None  # the environment above has one
    return Markup(loader.get_source(_environment(), name)[0])
