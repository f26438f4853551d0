"""A placeholder, as all of torchvision here."""

from __future__ import annotations

from .. import __getattr__ as __getattr__
