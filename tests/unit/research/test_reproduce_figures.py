"""The figures of a reproduction."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from reproduced import EXPERIMENT, NEW, OLD, TRIALS, Reader, needs_matplotlib, numbers_of_trial, text_of

from taciturn_research.reproduce import pages
from taciturn_research.reproduce.experiment import (
    Numbers,
    Picture,
)
from taciturn_research.reproduce.pages import blocks
from taciturn_research.reproduce.pages.blocks import Image, escaped, web_page
from taciturn_research.reproduce.pages.figures import draw_picture, points_of

# ------------------------------------------------------------------ figures


def drawn(picture, numbers):
    with pages.figures.house_style():
        figure = draw_picture(picture, points_of(picture, numbers))
        figure.draw_without_rendering()
    return figure


def legend_of(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


CURVES, HEAT_MAP, _ = EXPERIMENT.pictures


@needs_matplotlib
def test_figures_are_stored_as_png_and_svg_and_shown_in_both_pages(folder):
    stems = ["made-up-figure-1", "made-up-figure-2"]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == [
        f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")
    ]
    text = text_of(folder, "reproduction.md")
    images = Reader(text_of(folder, "reproduction.html")).images
    for stem, image in zip(stems, images, strict=True):
        assert (folder / "figures" / f"{stem}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        tree = ElementTree.fromstring(text_of(folder, f"figures/{stem}.svg"))
        assert tree.tag == "{http://www.w3.org/2000/svg}svg"
        assert f"![{escaped(image['alt'])}](figures/{stem}.png)" in text
        assert image["src"].startswith("data:image/svg+xml;base64,")
    assert images[0]["alt"] == (
        f"Curves of error against privacy for each by: {OLD}, {NEW}, a panel for each data: first, second, near_one."
    )


def test_several_pictures_of_one_item_have_files_of_their_own(monkeypatch):
    monkeypatch.setattr(pages.figures, "_files", lambda picture, points: (b"", b""))
    experiment = replace(EXPERIMENT, pictures=(CURVES, HEAT_MAP, replace(CURVES, item="Figure 2"), CURVES))
    stems = [image.stem for image in pages.figures.images_of(experiment, TRIALS, {}).values()]
    names = ("figure-1", "figure-2", "figure-2-2", "figure-1-2")
    assert stems == [f"figures/made-up-{name}" for name in names]


def test_long_svg_files_are_shown_as_png(monkeypatch):
    image = Image("figures/a", "what it shows", "Caption", b"\x89PNG\r\n\x1a\n", b"<svg/>")
    assert Reader(web_page("Page", [image])).images[0]["src"] == "data:image/svg+xml;base64,PHN2Zy8+"
    monkeypatch.setattr(blocks, "_MOST_BYTES_AS_SVG", 6)
    assert Reader(web_page("Page", [image])).images[0]["src"].startswith("data:image/png;base64,iVBORw0KGgo")


@needs_matplotlib
def test_curves_have_bands_styles_and_axes_of_their_own():
    # The third series is in the second panel only.
    rows = [{"data": "second", "epsilon": epsilon, "by": "Late", "value": 0.5} for epsilon in (1.0, 10.0)]
    late = Numbers([*(row for trial in range(3) for row in numbers_of_trial(None, trial)), *rows])
    figure = drawn(replace(CURVES, marks=(0.25,)), late)
    first, second = figure.axes
    assert legend_of(figure) == [OLD, NEW, "Late"]
    assert [axes.get_title() for axes in (first, second)] == ["first", "second"]
    old, new, mark = first.get_lines()
    np.testing.assert_allclose(old.get_xydata(), [[1.0, 0.1], [10.0, 1.0]])
    np.testing.assert_allclose(new.get_xydata(), [[1.0, 0.05], [10.0, 0.5]])
    assert list(mark.get_ydata()) == [0.25, 0.25]
    assert [line.get_linestyle() for line in second.get_lines()[:3]] == ["-", "--", "--"]
    assert len({(line.get_color(), line.get_marker()) for line in second.get_lines()[:3]}) == 3
    heights = first.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (pytest.approx(0.0), pytest.approx(1.1))
    assert (first.get_xscale(), first.get_yscale()) == ("log", "linear")
    assert [text.get_text() for text in first.get_xticklabels()] == ["1", "10"]
    assert figure.get_suptitle() == "Figure 1: curves"


@needs_matplotlib
def test_only_a_mixture_of_published_and_other_series_is_told_apart_by_dashes():
    numbers = Numbers({"x": x, "k": k, "value": x * k} for x in (1, 2) for k in (5, 8))
    figure = drawn(Picture("Figure 1", "", "curves", "x", "k", "x", "y"), numbers)
    assert [line.get_linestyle() for line in figure.axes[0].get_lines()] == ["-", "-"]
    assert legend_of(figure) == ["5", "8"]


@needs_matplotlib
def test_panels_share_a_height_only_where_none_is_flattened():
    low, high = (
        [{"p": p, "x": x, "s": "a", "value": size} for x in (1, 2)] for p, size in (("low", 1.0), ("high", 9.0))
    )
    picture = Picture("Figure 1", "", "curves", "x", "s", "x", "y", panels="p")
    first, second = drawn(picture, Numbers(low + high)).axes
    assert first.get_ylim()[1] < 2.0 < second.get_ylim()[1]
    halved = [row | {"value": row["value"] / 3.0} for row in high]
    first, second = drawn(picture, Numbers(low + halved)).axes
    assert first.get_ylim() == second.get_ylim()


@needs_matplotlib
@pytest.mark.parametrize("kind", ["curves", "bars", "heat map"])
def test_panels_with_a_common_axis_have_the_same_order(kind):
    """What comes first in the rows of one panel may come last in those of another."""
    values = {(x, s): 10.0 * place_x + place_s for place_x, x in enumerate("ab") for place_s, s in enumerate("uv")}
    rows = [{"p": 1, "x": x, "s": s, "value": value} for (x, s), value in values.items()]
    rows += [{"p": 2, "x": x, "s": s, "value": value} for (x, s), value in reversed(values.items())]
    first, second, *_ = drawn(Picture("Figure 1", "", kind, "x", "s", "x", "y", panels="p"), Numbers(rows)).axes
    for axes in (first, second):
        assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]
        if kind == "curves":
            np.testing.assert_allclose([line.get_ydata() for line in axes.get_lines()], [[0.0, 10.0], [1.0, 11.0]])
        elif kind == "bars":
            bars = sorted(axes.patches, key=lambda bar: bar.get_x())
            np.testing.assert_allclose([bar.get_height() for bar in bars], [0.0, 1.0, 10.0, 11.0])
        else:
            np.testing.assert_allclose(axes.collections[0].get_array(), [[0.0, 10.0], [1.0, 11.0]])


@needs_matplotlib
def test_a_band_that_reaches_zero_is_cut_on_a_log_axis():
    values = {1: (1.0, 3.0), 2: (0.0, 8.0)}
    rows = [{"x": x, "s": "a", "value": values[x][trial]} for trial in (0, 1) for x in values]
    picture = Picture("Figure 1", "", "curves", "x", "s", "x", "y", y_scale="log")
    (axes,) = drawn(picture, Numbers(rows)).axes
    # Means 2 and 4, standard deviations sqrt(2) and sqrt(32): the second band would begin below zero.
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(
        sorted(set(np.round(heights, 6))), np.round([1.0, 4.0 + 32**0.5, 2.0 + 2**0.5], 6)[[0, 2, 1]]
    )


@needs_matplotlib
@pytest.mark.parametrize(
    ("heights", "shown", "not_shown"),
    [((0.4, 3.0), {"0.5", "1", "2"}, {"0.6", "3"}), ((1e-5, 10.0), {"0.001", "10"}, {"0.02", "0.002", "5"})],
)
def test_numbers_on_a_log_axis_are_plain(heights, shown, not_shown):
    rows = [{"x": x, "s": "a", "value": height} for x, height in enumerate(heights)]
    (axes,) = drawn(Picture("Figure 1", "", "curves", "x", "s", "x", "y", y_scale="log"), Numbers(rows)).axes
    names = {text.get_text() for minor in (False, True) for text in axes.get_yticklabels(minor=minor)}
    assert shown <= names
    assert not names & not_shown


@needs_matplotlib
def test_bars_stand_in_groups_with_whiskers():
    picture = Picture("Figure 3", "bars", "bars", "data", "by", "data", "error", where={"epsilon": 10.0})
    figure = drawn(picture, TRIALS)
    (axes,) = figure.axes
    bars = [bar for group in axes.containers if hasattr(group, "patches") for bar in group.patches]
    np.testing.assert_allclose([bar.get_height() for bar in bars], [1.0, 3.0, 0.5, 0.5])
    centres = [bar.get_x() + bar.get_width() / 2 for bar in bars]
    assert [round(centre) for centre in centres] == [0, 1, 0, 1]
    assert centres[0] < 0.0 < centres[2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["first", "second"]
    assert legend_of(figure) == [OLD, NEW]
    whiskers = axes.collections[0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in whiskers], [[0.9, 1.1], [2.9, 3.1]])
    assert [bar.get_hatch() for bar in bars] == [None, None, "////", "////"]


@needs_matplotlib
def test_a_heat_map_of_a_difference_parts_at_zero():
    missing = [{"data": "third", "epsilon": 1.0, "by": by, "value": value} for by, value in ((OLD, 0.0), (NEW, 0.5))]
    figure = drawn(HEAT_MAP, Numbers([*(row for trial in range(3) for row in numbers_of_trial(None, trial)), *missing]))
    axes, scale = figure.axes
    (mesh,) = axes.collections
    cells = mesh.get_array()
    np.testing.assert_allclose(cells[:2], [[0.05, 0.5], [2.05, 2.5]])
    assert cells[2, 0] == -0.5
    assert cells.mask.tolist() == [[False, False], [False, False], [False, True]]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (-2.5, 2.5)
    assert [text.get_text() for text in axes.texts] == ["0.05", "0.50", "2.05", "2.50", "-0.50"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["first", "second", "third"]
    # The first row is the upper one.
    assert axes.get_ylim() == (3.0, 0.0)
    assert scale.get_ylabel() == "error"


@needs_matplotlib
def test_a_large_heat_map_has_no_numbers_and_one_of_means_begins_at_their_least():
    rows = [{"x": x, "y": y, "value": 5.0 + x + y} for x in range(21) for y in range(10)]
    picture = Picture("Figure 6", "", "heat map", "x", "y", "x", "value")
    axes = drawn(picture, Numbers(rows)).axes[0]
    assert not axes.texts
    assert (axes.collections[0].norm.vmin, axes.collections[0].norm.vmax) == (5.0, 34.0)
    assert len(drawn(picture, Numbers(rows[:200])).axes[0].texts) == 200


def test_differences_are_taken_within_trials():
    picture = replace(CURVES, panels=None, subtract=("by", OLD, NEW), series="data", where={"epsilon": 10.0})
    points = points_of(picture, TRIALS)
    # What the two methods share in a trial is no spread: the step of 0.1 is gone.
    assert [(point.series, point.x) for point in points] == [("first", 10.0), ("second", 10.0)]
    np.testing.assert_allclose([point.mean for point in points], [0.5, 2.5])
    assert all(point.sd is None or point.sd < 1e-12 for point in points)
    assert all(point.sd == pytest.approx(0.1) for point in points_of(CURVES, TRIALS))


@needs_matplotlib
@pytest.mark.parametrize(("n_places", "angle"), [(3, 0.0), (9, 40.0)])
@pytest.mark.parametrize("kind", ["curves", "bars", "heat map"])
def test_names_of_places_do_not_run_into_each_other(kind, n_places, angle):
    rows = [{"x": f"every {x}th step", "s": s, "value": x} for x in range(n_places) for s in "ab"]
    (axes, *_) = drawn(Picture("Figure 1", "", kind, "x", "s", "x", "y"), Numbers(rows)).axes
    texts = axes.get_xticklabels()
    assert {text.get_rotation() for text in texts} == {angle}
    if angle == 0.0:
        edges = [(text.get_window_extent().x0, text.get_window_extent().x1) for text in texts]
        assert all(before[1] < after[0] for before, after in pairwise(edges))


@needs_matplotlib
@pytest.mark.parametrize("kind", ["curves", "bars", "heat map"])
def test_all_text_can_be_read_and_the_legend_hides_nothing(kind):
    rows = [
        {
            "x": f"a rather long name {x}",
            "p": f"panel {p}",
            "s": f"A method with a long name, number {s}",
            "value": x + s,
        }
        for x in range(4)
        for p in range(4)
        for s in range(7)
    ]
    figure = drawn(Picture("Figure 1", "many words " * 15, kind, "x", "s", "x", "y", panels="p"), Numbers(rows))
    from matplotlib.text import Text

    shown = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert min(text.get_fontsize() for text in shown) >= 8.0
    canvas = figure.bbox
    panels = [axes.get_window_extent() for axes in figure.axes if axes.axison]
    assert min(min(panel.width, panel.height) for panel in panels[:4]) > 120
    if kind != "heat map":
        legend = figure.legends[0].get_window_extent()
        assert not any(axes.get_tightbbox().overlaps(legend) for axes in figure.axes if axes.axison)
        assert canvas.x0 <= legend.x0 < legend.x1 <= canvas.x1
    title = figure._suptitle.get_window_extent()
    assert canvas.x0 <= title.x0 < title.x1 <= canvas.x1
    assert not any(panel.overlaps(title) for panel in panels)
