"""Plots as SVG: points and the straight line through them, on logarithmic axes. No library; the same numbers give the same bytes.

Colours follow the reader's preference for light or dark.
"""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 66, 16, 44, 52
STYLE = """
  svg { color-scheme: light dark; --ink: #1f2328; --faint: #d1d9e0; --paper: #ffffff; --point: #0969da; --line: #bc4c00 }
  @media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --faint: #3d444d; --paper: #0d1117; --point: #58a6ff; --line: #f0883e } }
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  .title { font-weight: 600; font-size: 14px }
  .paper { fill: var(--paper) }
  .grid { stroke: var(--faint); stroke-width: 1 }
  .axis { stroke: var(--ink); stroke-width: 1; fill: none }
  .point { fill: var(--point) }
  .line { stroke: var(--line); stroke-width: 2; fill: none }
"""


def line(points):
    """Least squares: (slope, intercept, worst deviation of a point as a part of what the line says there)."""
    count = len(points)
    mean_x, mean_y = (sum(values) / count for values in zip(*points))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    intercept = mean_y - slope * mean_x
    return slope, intercept, max((abs(y / (slope * x + intercept) - 1), x) for x, y in points)


def svg(title, panels):
    """A row of panels: {title, x, y: names of the axes, points: [(x, y)], fit: what `line` gave, note}."""
    width = WIDTH * len(panels)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img">',
             f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", f'<rect class="paper" width="{width}" height="{HEIGHT}"/>']
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * WIDTH} 0)">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel):
    points, (slope, intercept, _) = panel["points"], panel["fit"]
    fitted = [(x, slope * x + intercept) for x in _between(points[0][0], points[-1][0])]
    place_x, ticks_x = _scale([x for x, _ in points], LEFT, WIDTH - RIGHT)
    place_y, ticks_y = _scale([y for _, y in points + fitted if y > 0], HEIGHT - BOTTOM, TOP)
    yield f'<text class="title" x="{LEFT}" y="18">{escape(panel["title"])}</text>'
    yield f'<text x="{LEFT}" y="35">{escape(panel["note"])}</text>'
    for value in ticks_x:
        yield f'<path class="grid" d="M{place_x(value)} {TOP}V{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{place_x(value)}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{_number(value)}</text>'
    for value in ticks_y:
        yield f'<path class="grid" d="M{LEFT} {place_y(value)}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 7}" y="{place_y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(panel["x"])}</text>'
    yield f'<text transform="translate(15 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{escape(panel["y"])}</text>'
    path = "L".join(f"{place_x(x)} {place_y(y)}" for x, y in fitted if y > 0)
    yield f'<path class="line" d="M{path}"/>'
    for x, y in points:
        yield f'<circle class="point" cx="{place_x(x)}" cy="{place_y(y)}" r="4"><title>{_number(x)}: {y:.4g}</title></circle>'


def _between(low, high, count=60):
    return [low * (high / low) ** (step / count) for step in range(count + 1)]


def _scale(values, start, end):
    """Places values on a logarithmic axis; and where its marks are: at 1, 2 and 5 of each decade, at least two of them."""
    low, high = min(values), max(values)
    marks = [digit * 10.0 ** power for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2) for digit in (1, 2, 5)]
    if high / low > 200:
        marks = marks[::3]
    low, high = max(mark for mark in marks if mark <= low), min(mark for mark in marks if mark >= high)
    if low == high:
        high = min(mark for mark in marks if mark > low)
    def place(value):
        return round(start + (end - start) * math.log(value / low) / math.log(high / low), 1)
    return place, [mark for mark in marks if low <= mark <= high]


def _number(value):
    if value >= 1e6 and value % 1e5 == 0:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e4 and value % 1e3 == 0 else f"{value:g}"
