"""The pictures of the documentation, from the screenshots that tests leave: `make screenshots`."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.docs.pages import DOCS, ROOT

SHOTS = ROOT / "build" / "screenshots"
FOLDER = DOCS / "images"
WIDTH = 1200
PICTURES = {
    # The picture, the screenshot that it is drawn from, and what is shown of it: shares of its width.
    "report": ("trials-40-1280-light", 1.0, 0.75),
    "mlflow-list": ("mlflow-list", 0.74, 0.5),
    "mlflow-charts": ("mlflow-charts", 0.74, 0.5),
}
"""Width and height, as shares of the screenshot's width: MLflow's assistant stands at the right of its page."""


def draw(shots: Path, folder: Path) -> None:
    """Cut, shrink and write them as WebP. Raises FileNotFoundError where a test left no screenshot."""
    for name, (shot, wide, high) in PICTURES.items():
        with Image.open(shots / f"{shot}.png") as picture:
            width, height = picture.size
            cut = picture.convert("RGB").crop((0, 0, round(wide * width), min(height, round(high * width))))
            cut.resize((WIDTH, round(WIDTH * cut.height / cut.width))).save(
                folder / f"{name}.webp", quality=72, method=6
            )


if __name__ == "__main__":
    draw(SHOTS, FOLDER)
