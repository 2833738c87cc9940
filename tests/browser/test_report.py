"""The report in headless Chromium: quiet, alone, narrow, dark and light, readable, and safe against foreign text."""

import re

import pytest

PHONE = (375, 812)
DESKTOP = (1280, 900)

# Contrast by WCAG 2.2 of an element's text against the nearest opaque background behind it.
CONTRAST = """
(() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const opaque = element => {
    for (let at = element; at; at = at.parentElement) {
      const c = channels(getComputedStyle(at).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const luminance = ([r, g, b]) => {
    const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ratio = element => {
    const a = luminance(channels(getComputedStyle(element).color)), b = luminance(opaque(element));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const worst = {};
  for (const selector of SELECTORS)
    for (const element of document.querySelectorAll(selector)) {
      const value = ratio(element);
      if (!(worst[selector] < value)) worst[selector] = value;
    }
  return worst;
})()
"""


def visit(page, report, size=DESKTOP, scheme="light"):
    page.size(*size, mobile=size is PHONE)
    page.scheme(scheme)
    page.open(report.as_uri())
    # All pages of this profile share one storage: a choice that another test made must not decide here.
    page.js("localStorage.clear(); delete document.documentElement.dataset.theme")
    page.settle()


def open_details(page):
    """Opens every details element and returns how many there are and how many stayed closed."""
    return page.js("(() => { const all = [...document.querySelectorAll('details')]; all.forEach(d => d.open = true);"
                   " return [all.length, all.filter(d => !d.open).length]; })()")


def test_logs_nothing_and_asks_for_nothing(page, reports, kind):
    visit(page, reports[kind])
    open_details(page)
    page.js("document.querySelectorAll('thead button').forEach(b => b.click())")
    page.js("document.getElementById('theme').click()")
    page.settle()
    assert page.console == []
    outside = [url for url in page.requests if url != reports[kind].as_uri() and not url.startswith("data:")]
    assert outside == []


def test_fits_a_phone(page, reports, kind):
    visit(page, reports[kind], PHONE)
    count, closed = open_details(page)
    page.settle()
    assert closed == 0
    assert page.js("document.documentElement.scrollWidth") <= PHONE[0]
    wide = page.js("""[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
                      && !e.closest('.scroll') && !e.closest('pre')).map(e => e.tagName + '.' + e.className).slice(0, 5)""")
    assert wide == [], "only tables and charts in their own box may be wider"
    if kind == "full":
        assert count > 8


def test_every_chart_speaks(page, reports, kind):
    visit(page, reports[kind])
    charts = page.js("[...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))")
    assert all(label and len(label) > 8 for label in charts)
    if kind in ("full", "gpu"):
        assert len(charts) >= 8
    headings = page.js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert headings[0] == 1 and headings.count(1) == 1
    scrollers = page.js("[...document.querySelectorAll('.scroll')].every(s => s.tabIndex === 0 && s.getAttribute('aria-label'))")
    assert scrollers


def test_no_label_is_clipped_or_overlaps(page, reports, kind):
    visit(page, reports[kind])
    open_details(page)
    page.settle()
    trouble = page.js("""(() => {
      const out = [];
      for (const svg of document.querySelectorAll('svg')) {
        const frame = svg.getBoundingClientRect();
        const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
        for (const [words, box] of boxes)
          if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
            out.push('clipped: ' + words + ' in ' + svg.getAttribute('aria-label'));
        for (let i = 0; i < boxes.length; ++i)
          for (let j = i + 1; j < boxes.length; ++j) {
            const a = boxes[i][1], b = boxes[j][1];
            if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
              out.push('overlap: ' + boxes[i][0] + ' / ' + boxes[j][0] + ' in ' + svg.getAttribute('aria-label'));
          }
      }
      return out.slice(0, 10);
    })()""")
    assert trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, reports, kind, scheme):
    visit(page, reports[kind], scheme=scheme)
    open_details(page)
    background = page.js("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 64) == (scheme == "dark")
    selectors = [".word", ".sentence", ".counts li", ".badge", ".quiet", ".note", "th", "td", "td small", ".tiles dt", ".tiles dd",
                 "pre", "nav a", "summary", ".why", ".agree", ".empty-state", ".digest", ".validity dt", ".validity dd",
                 ".validity small", ".banner", ".banner b", ".legend li", ".callout li", "figcaption"]
    worst = page.js(CONTRAST.replace("SELECTORS", str(selectors)))
    assert worst[".word"] >= 4.5
    assert {name: value for name, value in worst.items() if value < 4.5} == {}


def test_dark_by_system_and_by_button(page, reports):
    background = "getComputedStyle(document.body).backgroundColor"
    visit(page, reports["full"], scheme="light")
    light = page.js(background)
    page.scheme("dark")
    page.settle()
    dark = page.js(background)
    assert dark != light
    page.js("document.getElementById('theme').click()")
    assert page.js(background) == light, "the button overrules the system"
    page.js("document.getElementById('theme').click()")
    assert page.js(background) == dark
    page.open(reports["full"].as_uri())
    assert page.js(background) == dark, "the choice is kept"


def test_tables_sort(page, reports):
    visit(page, reports["full"])
    column = "[...document.querySelectorAll('#lanes table.sortable tbody tr')].map(r => r.cells[5].dataset.v || '')"
    before = page.js(column)
    head = "document.querySelectorAll('#lanes table.sortable thead th')[5]"
    page.js(head + ".querySelector('button').click()")
    assert page.js(head + ".getAttribute('aria-sort')") == "ascending"
    values = [float(v) for v in page.js(column) if v]
    assert values == sorted(values) and len(values) > 1
    page.js(head + ".querySelector('button').click()")
    assert [float(v) for v in page.js(column) if v] == sorted(values, reverse=True)
    page.js(head + ".querySelector('button').click()")
    assert page.js(column) == before


def test_tooltip_follows_the_pointer(page, reports):
    visit(page, reports["full"])
    where = page.js("(() => { const b = document.querySelector('#timeline .bar'); b.scrollIntoView({block: 'center', behavior: 'instant'});"
                    " const r = b.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=where[0], y=where[1])
    page.settle()
    assert "sent at" in page.js("document.getElementById('tip').textContent")
    assert page.js("document.getElementById('tip').hidden") is False


def test_readable_without_script(page, reports):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.size(*DESKTOP)
    page.open(reports["full"].as_uri())
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    text = page.js("document.body.innerText")
    assert "No promotion" in text and "Chain of hashes" in text
    assert page.js("document.getElementById('theme').hidden"), "a button that does nothing is not shown"


def test_prints(page, reports):
    visit(page, reports["full"], scheme="dark")
    data = page.call("Page.printToPDF", printBackground=True)["data"]
    assert len(data) > 20000
    assert page.console == []


def test_a_load_run_shows_whether_to_believe_it(page, reports):
    visit(page, reports["bench"])
    lanes = page.js("document.querySelectorAll('article.lane').length")
    assert lanes == 6
    assert page.js("document.querySelectorAll('dl.validity').length") == lanes
    assert page.js("[...document.querySelectorAll('#lanes .panels')].every(p => p.querySelectorAll('svg').length >= 2)")
    # The strips of the timeline share its axis: they are one drawing.
    assert page.js("document.querySelectorAll('#timeline svg').length") == 1
    assert "under way" in page.js("document.querySelector('#timeline svg').textContent")
    assert page.js("document.querySelectorAll('.callout.bad').length") == 0
    visit(page, reports["troubled"])
    assert page.js("document.querySelectorAll('.callout.bad').length") == 7, "one on top, one in each lane"
    assert "line-through" in page.js("getComputedStyle(document.querySelector('#lanes td.refused s')).textDecoration")


def test_a_campaign_shows_its_effects(page, reports):
    visit(page, reports["campaign-effect"])
    rows = page.js("document.querySelectorAll('#effects table.sortable tbody tr').length")
    drawn = page.js("document.querySelectorAll('#effects .effect-dot').length")
    assert rows == drawn == 12
    assert page.js("document.querySelector('.strip .word').textContent") == "B is faster"
    assert page.js("document.querySelectorAll('#order .dot.open').length") > 0, "excluded runs are hollow"
    visit(page, reports["campaign-exploratory"])
    top = page.js("document.querySelector('.banner').textContent")
    assert top.startswith("EXPLORATORY")
    visit(page, reports["campaign-aa"])
    assert page.js("document.querySelector('.strip .word').textContent") == "Not resolved"


@pytest.mark.parametrize("evil", ["hostile", "campaign-hostile"])
def test_foreign_text_runs_nothing(page, reports, evil):
    visit(page, reports[evil])
    open_details(page)
    if evil == "hostile":
        assert page.js("document.title").startswith("</title><script>")
    assert page.js("document.querySelectorAll('script').length") == 1
    assert page.js("document.querySelectorAll('main img, main iframe, main [onload], main [onerror], main [onmouseover]').length") == 0
    assert not re.search("[\\u202a-\\u202e\\u2066-\\u2069]", page.js("document.body.textContent"))
