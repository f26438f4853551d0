"""The pictures of the documentation, from the screenshots that tests leave: `make screenshots`."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.docs.pages import DOCS, ROOT

SHOTS = ROOT / "build" / "screenshots"
FOLDER = DOCS / "images"
WIDTH = 1200
PICTURES = {
    # The picture, the screenshot that it is drawn from, and how much of its height is shown.
    "report": ("trials-40-1280-light", 0.75),
    "mlflow-list": ("mlflow-list", 0.62),
    "mlflow-charts": ("mlflow-charts", 0.62),
}
"""Height: as a share of the width."""


def draw(shots: Path, folder: Path) -> None:
    """Cut, shrink and write them as WebP. Raises FileNotFoundError where a test left no screenshot."""
    for name, (shot, share) in PICTURES.items():
        with Image.open(shots / f"{shot}.png") as picture:
            width, height = picture.size
            cut = picture.convert("RGB").crop((0, 0, width, min(height, round(share * width))))
            cut.resize((WIDTH, round(WIDTH * cut.height / width))).save(folder / f"{name}.webp", quality=72, method=6)


if __name__ == "__main__":
    draw(SHOTS, FOLDER)
