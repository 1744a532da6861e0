"""The page in a real browser."""

from __future__ import annotations

import json
import time

import pytest

from holdfast.report.page import safe_json, write_report
from tests.report.conftest import NASTY

TABLE = "#agents-table tbody tr"


@pytest.fixture(scope="module")
def file(folder, tmp_path_factory):
    return write_report([folder], tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser, file):
    """Opens the page; what the browser complained about or asked for is noted on it."""
    contexts = []

    def open_page(path=file, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]", timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()


def lines(page, chart):
    return page.locator(f"#{chart} .scatterlayer .trace").count()


def wait_until(page, condition):
    """The page's own rules forbid what ``wait_for_function`` does."""
    until = time.monotonic() + 30.0
    while not page.evaluate(condition):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(50)


def changed(file, path, change):
    """The page with other data for its charts."""
    html = file.read_text(encoding="utf-8")
    start = html.index('id="data">') + len('id="data">')
    data, length = json.JSONDecoder().raw_decode(html[start:])
    change(data)
    path.write_text(html[:start] + str(safe_json(data)) + html[start + length :], encoding="utf-8")
    return path


def chart_of(page, task):
    titles = page.locator("#curves h3").all_inner_texts()
    return f"curve-{titles.index(task)}"


def test_curves_are_drawn_without_complaints_or_requests(opened, file):
    page = opened()
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("data:")] == [file.as_uri()]
    # Four agents, each with the mean and two ends of its interval.
    assert lines(page, chart_of(page, "cliff")) == 12
    assert page.locator("#finals .chart").count() == 2
    assert page.locator("#holds .js-fill").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_charts_stay_within_their_boxes_and_bands_below_the_lines(opened, width):
    page = opened(viewport={"width": width, "height": 900})
    inside = """[...document.querySelectorAll('.chart')].map((box) =>
        box.querySelector('svg.main-svg').getBoundingClientRect().right <= box.getBoundingClientRect().right)"""
    assert page.evaluate(inside) == [True] * page.locator(".chart").count()
    traces = f"document.querySelector('#{chart_of(page, 'cliff')} .plot')._fullData"
    drawn = page.evaluate(f"{traces}.map((one) => one.hoverinfo !== 'skip')")
    assert drawn == sorted(drawn)


def test_an_agent_switched_off_leaves_the_picture(opened):
    page = opened()
    cliff = chart_of(page, "cliff")
    before, picture = lines(page, cliff), page.locator(f"#{cliff} .plot").screenshot()
    page.get_by_label("Q-learning", exact=True).uncheck()
    assert lines(page, cliff) == before - 3
    assert page.locator(f"#{cliff} .plot").screenshot() != picture
    page.get_by_label("all of PerQ-learning").uncheck()
    assert lines(page, cliff) == 0
    page.get_by_label("PerQ-learning, k_max=4").check()
    assert lines(page, cliff) == 3


def test_the_quantity_and_single_seeds_can_be_switched(opened):
    page = opened()
    cliff = chart_of(page, "cliff")
    page.get_by_label("Show").select_option("decisions")
    assert "decisions per episode" in page.locator(f"#{cliff} .ytitle").text_content()
    before = lines(page, cliff)
    page.get_by_label("single seeds").check()
    # Three agents of three and two seeds: 3 + 3 + 2 + 2.
    assert lines(page, cliff) == before + 10


def test_intervals_can_be_switched_off(opened):
    page = opened()
    cliff = chart_of(page, "cliff")
    page.get_by_label("intervals", exact=True).uncheck()
    assert lines(page, cliff) == 4


def test_eighteen_settings_of_an_algorithm_look_different(opened, file, tmp_path):
    def eighteen(data):
        for task in data["tasks"]:
            # One with a line, not a single point.
            agent = max(task["agents"], key=lambda one: len(one["curves"][task["quantity"]]["x"]))
            task["agents"] = [{**agent, "label": f"agent {dash}", "dash": dash} for dash in range(18)]

    page = opened(changed(file, tmp_path / "page.html", eighteen))
    plot = f"document.querySelector('#{chart_of(page, 'cliff')} .plot')"
    drawn = page.evaluate(
        f"{plot}._fullData.filter((one) => one.hoverinfo !== 'skip').map((one) => one.line.color + one.line.dash)"
    )
    assert len(drawn) == len(set(drawn)) == 18


def test_a_phone_has_its_links_in_a_line_and_no_title_cut(opened):
    page = opened(viewport={"width": 390, "height": 844})
    bar, links = (page.locator(place).bounding_box() for place in (".bar", "nav"))
    assert links["width"] > 0.85 * bar["width"]
    assert links["height"] < 70
    inside = """[...document.querySelectorAll('.chart')].every((box) => {
        const room = box.getBoundingClientRect();
        return [...box.querySelectorAll('.xtitle, .ytitle')].every((title) => {
            const text = title.getBoundingClientRect();
            return text.left >= room.left && text.right <= room.right;
        });
    })"""
    assert page.evaluate(inside)


def test_the_table_sorts_and_filters(opened):
    page = opened()
    seeds = f"{TABLE} td:nth-child(3)"
    page.get_by_role("button", name="Seeds").click()
    numbers = list(map(int, page.locator(seeds).all_inner_texts()))
    assert numbers == sorted(numbers, reverse=True)
    assert page.locator("#agents-table th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Seeds").click()
    assert list(map(int, page.locator(seeds).all_inner_texts())) == sorted(numbers)
    page.locator("#agents-filter").fill("cartpole")
    assert page.locator(f"{TABLE}:visible").count() == 1
    assert page.locator('[data-count="agents-table"]').inner_text() == "1 of 5"


def test_a_run_whose_name_is_html_is_text(opened):
    page = opened()
    assert page.locator("#runs-table th", has_text=NASTY).count() == 1
    assert page.locator("img[src=x]").count() == 0
    assert page.complaints == []


def test_charts_are_drawn_if_no_agent_has_holds(opened, file, tmp_path):
    def without_holds(data):
        for task in data["tasks"]:
            for agent in task["agents"]:
                agent["holds"] = None

    page = opened(changed(file, tmp_path / "page.html", without_holds))
    assert page.complaints == []
    assert not page.locator("#failure").is_visible()
    assert page.locator("#holds .chart").count() == 0


def test_zoom_goes_by_mouse_buttons_and_keys(opened):
    page = opened()
    cliff = chart_of(page, "cliff")
    axis = f"document.querySelector('#{cliff} .plot')._fullLayout.xaxis.range"
    span = f"({axis}[1] - {axis}[0])"
    whole = page.evaluate(span)
    page.locator(f"#{cliff}").get_by_role("button", name="Zoom in").click()
    wait_until(page, f"{span} < {0.6 * whole}")
    page.locator(f"#{cliff} .plot").focus()
    page.keyboard.press("+")
    wait_until(page, f"{span} < {0.3 * whole}")
    page.keyboard.press("0")
    wait_until(page, f"Math.abs({span} - {whole}) < {0.01 * whole}")
    box = page.locator(f"#{cliff} .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 140, steps=5)
    page.mouse.up()
    wait_until(page, f"{span} < {0.6 * whole}")


def test_hovering_tells_the_numbers(opened):
    page = opened()
    cliff = chart_of(page, "cliff")
    page.locator(f"#{cliff} .nsewdrag").scroll_into_view_if_needed()
    box = page.locator(f"#{cliff} .nsewdrag").bounding_box()
    for across in (0.45, 0.5):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + box["height"] / 2)
    wait_until(page, f"document.querySelector('#{cliff} .hoverlayer').textContent.includes('Q-learning')")


def test_the_keyboard_reaches_everything(opened):
    page = opened()
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
        .filter((one) => one.checkVisibility() || one.className === 'skip')
        .map((one, number) => (one.dataset.number = number))"""
    )
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("Number(document.activeElement.dataset.number ?? -1)"))
    assert set(wanted) - reached == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(opened, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'holdfast-rl[test]'")
    page = opened(color_scheme=scheme, viewport={"width": width, "height": 900})
    found = axe.Axe().run(page).response["violations"]
    grave = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert grave == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dark_and_light_are_told_by_the_system_and_by_the_button(opened):
    page = opened(color_scheme="dark")
    ink = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ink)
    page.locator("#theme").click()
    assert page.evaluate(ink) == "rgb(255, 255, 255)" != dark
    assert page.locator("#theme").get_attribute("aria-pressed") == "false"


def test_the_page_prints_its_charts(opened):
    page = opened()
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert page.locator("#agents-table").is_visible()
