"""The picture of the layers in docs/contributing.md is that of the layers."""

from __future__ import annotations

from tests.architecture import LAYERS
from tests.layer_picture import PAGE, levels, packages, page, picture, table


def test_the_page_shows_the_layers_as_they_are() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.layer_picture"


def test_every_package_stands_above_all_that_it_may_import() -> None:
    height = {package: -number for number, row in enumerate(levels()) for package in row}
    assert set(height) == set(packages())
    for package, layer in LAYERS.items():
        for lower in layer.packages:
            assert height[package] > height[lower]


def test_the_picture_has_every_package_once() -> None:
    assert sorted(picture().replace("```text", "").replace("```", "").split()) == sorted(packages())


def test_the_table_says_what_may_be_imported() -> None:
    rows = {line.split("`")[1]: line for line in table().splitlines()[2:]}
    assert rows["core"].endswith("|  | numpy, numba |")
    assert rows["deep"].endswith("| core, envs | torch, stable_baselines3, scipy, threadpoolctl |")
