"""Drawings of a study as SVG: themed by the page's style sheet, readable without scripts."""
