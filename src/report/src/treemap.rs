//! Squarified treemaps (Bruls, Huizing and van Wijk, 2000): nearly square rectangles with areas proportional to weights.
//!
//! Uses only sums, products and quotients of IEEE 754 doubles, so the same weights give the same drawing on every machine.

use std::collections::BTreeMap;

use serde::Serialize;

use vmbake_common::progress::human_bytes;

/// Size of the drawing in SVG units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 560.0;
/// Minimum width and height of a rectangle with a title.
const TITLE: (f64, f64) = (46.0, 30.0);
const TITLE_HEIGHT: f64 = 16.0;
/// Padding of a rectangle.
const GAP: f64 = 1.5;
/// Maximum number of rectangles in another one; the last one is the rest.
const MAX_PARTS: usize = 60;
/// Smaller fractions of the whole belong to the rest.
const LEAST: u64 = 2000;

/// Bytes by layer, artifact and directory.
pub(super) type Weights = BTreeMap<usize, BTreeMap<usize, BTreeMap<String, u64>>>;

#[derive(Debug, Default, Serialize)]
pub(super) struct Treemap {
    width: String,
    height: String,
    frames: Vec<Frame>,
    tiles: Vec<Tile>,
}

/// Frame around the tiles of a layer or an artifact.
#[derive(Debug, Serialize)]
struct Frame {
    place: SvgRect,
    layer: usize,
    /// 1 for layers, 2 for artifacts.
    level: u32,
    title: Option<String>,
}

/// A directory, or the rest.
#[derive(Debug, Serialize)]
struct Tile {
    place: SvgRect,
    layer: usize,
    artifact: Option<usize>,
    folder: Option<String>,
    title: Option<String>,
    /// Description.
    label: String,
}

/// Position and size as SVG attributes.
#[derive(Debug, Serialize)]
struct SvgRect {
    x: String,
    y: String,
    width: String,
    height: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    /// The inner area, below the title.
    fn inner(self, title: bool) -> Self {
        let top = if title { TITLE_HEIGHT } else { GAP };
        let (width, height) = ((self.width - 2.0 * GAP).max(0.0), (self.height - top - GAP).max(0.0));
        Self { x: self.x + GAP, y: self.y + top, width, height }
    }

    fn has_title(self) -> bool {
        self.width >= TITLE.0 && self.height >= TITLE.1
    }

    fn place(self) -> SvgRect {
        let [x, y, width, height] = [self.x, self.y, self.width, self.height].map(|value| format!("{value:.1}"));
        SvgRect { x, y, width, height }
    }
}

/// Draws the weights with names of layers and artifacts.
pub(super) fn draw(weights: &Weights, layers: &[String], artifacts: &[String]) -> Treemap {
    let mut drawing =
        Drawing { layers, artifacts, total: sum(weights.values().map(of_layer)), found: Treemap::default() };
    let whole = Rect { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let items = weights.iter().map(|(layer, inner)| (Some((*layer, inner)), of_layer(inner))).collect();
    for ((item, _), rect) in arrange(items, 0, whole) {
        if let Some((layer, inner)) = item {
            drawing.layer(layer, inner, rect);
        }
    }
    Treemap { width: format!("{WIDTH:.0}"), height: format!("{HEIGHT:.0}"), ..drawing.found }
}

struct Drawing<'a> {
    layers: &'a [String],
    artifacts: &'a [String],
    total: u64,
    found: Treemap,
}

impl Drawing<'_> {
    fn layer(&mut self, layer: usize, inner: &BTreeMap<usize, BTreeMap<String, u64>>, rect: Rect) {
        let name = self.layers.get(layer).cloned().unwrap_or_default();
        self.frame(rect, layer, 1, format!("{name}, {}", human_bytes(of_layer(inner))));
        let items =
            inner.iter().map(|(artifact, folders)| (Some((*artifact, folders)), of_artifact(folders))).collect();
        for ((item, bytes), place) in arrange(items, self.total / LEAST, rect.inner(rect.has_title())) {
            match item {
                Some((artifact, folders)) => self.artifact(layer, artifact, folders, place),
                None => self.tile(place, layer, None, None, bytes, vec![name.clone(), "others".to_owned()]),
            }
        }
    }

    fn artifact(&mut self, layer: usize, artifact: usize, folders: &BTreeMap<String, u64>, rect: Rect) {
        let name = match self.artifacts.get(artifact).map(String::as_str).unwrap_or_default() {
            "" => "no package",
            name => name,
        };
        self.frame(rect, layer, 2, format!("{name}, {}", human_bytes(of_artifact(folders))));
        let named = [self.layers.get(layer).cloned().unwrap_or_default(), name.to_owned()];
        let items = folders.iter().map(|(folder, bytes)| (Some(folder.clone()), *bytes)).collect();
        for ((folder, bytes), place) in arrange(items, self.total / LEAST, rect.inner(rect.has_title())) {
            let last = folder.clone().unwrap_or_else(|| "others".to_owned());
            let words = named.iter().cloned().chain([last]).collect();
            self.tile(place, layer, Some(artifact), folder, bytes, words);
        }
    }

    fn frame(&mut self, rect: Rect, layer: usize, level: u32, title: String) {
        let title = rect.has_title().then_some(title);
        self.found.frames.push(Frame { place: rect.place(), layer, level, title });
    }

    fn tile(
        &mut self,
        rect: Rect,
        layer: usize,
        artifact: Option<usize>,
        folder: Option<String>,
        bytes: u64,
        words: Vec<String>,
    ) {
        let title = rect.has_title().then(|| words.last().cloned()).flatten();
        let label = format!("{}: {}", words.join(", "), human_bytes(bytes));
        self.found.tiles.push(Tile { place: rect.place(), layer, artifact, folder, title, label });
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn of_artifact(folders: &BTreeMap<String, u64>) -> u64 {
    sum(folders.values().copied())
}

fn of_layer(artifacts: &BTreeMap<usize, BTreeMap<String, u64>>) -> u64 {
    sum(artifacts.values().map(of_artifact))
}

/// The heaviest items in rectangles inside of `rect`; `None` stands for the others, of which each has fewer than `least` bytes or
/// comes after too many.
fn arrange<T: Clone>(mut items: Vec<(Option<T>, u64)>, least: u64, rect: Rect) -> Vec<((Option<T>, u64), Rect)> {
    items.retain(|(_, bytes)| *bytes > 0);
    items.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let is_shown = |(index, (_, bytes)): (usize, &(Option<T>, u64))| index < MAX_PARTS && *bytes >= least;
    let shown = items.iter().enumerate().take_while(|item| is_shown((item.0, item.1))).count();
    if items.len() > shown + 1 || shown == 0 {
        let others = sum(items.drain(shown..).map(|(_, bytes)| bytes));
        if others > 0 {
            items.push((None, others));
        }
        items.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    }
    let weights: Vec<f64> = items.iter().map(|(_, bytes)| weight(*bytes)).collect();
    items.into_iter().zip(squarify(&weights, rect)).collect()
}

/// KiB: 32 bits, which a double holds exactly, are enough for 4 TiB.
fn weight(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX))
}

/// A rectangle for each weight, inside of `rect`. Weights are positive and descend.
pub(super) fn squarify(weights: &[f64], rect: Rect) -> Vec<Rect> {
    let total: f64 = weights.iter().sum();
    let scale = rect.width * rect.height / total;
    let areas: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let (mut rest, mut left, mut found) = (rect, areas.as_slice(), Vec::new());
    while !left.is_empty() {
        let side = rest.width.min(rest.height);
        let mut count = 1;
        while count < left.len() && worst(&left[..=count], side) <= worst(&left[..count], side) {
            count += 1;
        }
        let (row, others) = left.split_at(count);
        rest = lay(row, rest, &mut found);
        left = others;
    }
    found
}

/// The worst aspect ratio in a row of descending areas along a `side`.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let (most, least) = (row.first().copied().unwrap_or(0.0), row.last().copied().unwrap_or(0.0));
    let (side, sum) = (side * side, sum * sum);
    (side * most / sum).max(sum / (side * least))
}

/// Lays out a row along the shorter side of `rest`, and returns the remaining area.
fn lay(row: &[f64], rest: Rect, found: &mut Vec<Rect>) -> Rect {
    let sum: f64 = row.iter().sum();
    let is_wide = rest.width >= rest.height;
    let side = if is_wide { rest.height } else { rest.width };
    let depth = if side > 0.0 { sum / side } else { 0.0 };
    let mut at = 0.0;
    for area in row {
        let length = if depth > 0.0 { area / depth } else { 0.0 };
        found.push(match is_wide {
            true => Rect { x: rest.x, y: rest.y + at, width: depth, height: length },
            false => Rect { x: rest.x + at, y: rest.y, width: length, height: depth },
        });
        at += length;
    }
    match is_wide {
        true => Rect { x: rest.x + depth, width: (rest.width - depth).max(0.0), ..rest },
        false => Rect { y: rest.y + depth, height: (rest.height - depth).max(0.0), ..rest },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_are_those_of_the_paper() {
        let weights = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let found = squarify(&weights, Rect { x: 0.0, y: 0.0, width: 6.0, height: 4.0 });
        let shown: Vec<String> = found
            .iter()
            .map(|rect| format!("{:.2} {:.2} {:.2}x{:.2}", rect.x, rect.y, rect.width, rect.height))
            .collect();
        let expected = [
            "0.00 0.00 3.00x2.00",
            "0.00 2.00 3.00x2.00",
            "3.00 0.00 1.71x2.33",
            "4.71 0.00 1.29x2.33",
            "3.00 2.33 1.20x1.67",
            "4.20 2.33 1.20x1.67",
            "5.40 2.33 0.60x1.67",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_is_drawn_outside_or_lost() {
        let rect = Rect { x: 5.0, y: 7.0, width: 90.0, height: 40.0 };
        for weights in [vec![1.0], vec![4_294_967_295.0, 1.0], vec![1.0; 100], (1..60).rev().map(f64::from).collect()] {
            let found = squarify(&weights, rect);
            assert_eq!(found.len(), weights.len());
            let total: f64 = weights.iter().sum();
            for (weight, found) in weights.iter().zip(&found) {
                assert!((found.width * found.height - weight / total * 3600.0).abs() < 1e-6, "{found:?}");
                assert!(found.x >= 5.0 && found.x + found.width <= 95.0 + 1e-6, "{found:?}");
                assert!(found.y >= 7.0 && found.y + found.height <= 47.0 + 1e-6, "{found:?}");
            }
        }
        assert_eq!(squarify(&[], rect), []);
        let flat = squarify(&[2.0, 1.0], Rect { height: 0.0, ..rect });
        assert!(flat.iter().all(|found| found.height == 0.0 && found.width.is_finite()), "{flat:?}");
    }

    #[test]
    fn small_parts_are_drawn_as_one() {
        let folders: BTreeMap<String, u64> = (0_u64..200).map(|index| (format!("/{index:03}"), 4096 + index)).collect();
        let weights = BTreeMap::from([(0, BTreeMap::from([(0, folders)]))]);
        let found = draw(&weights, &["base".to_owned()], &[String::new()]);
        assert_eq!((found.frames.len(), found.tiles.len()), (2, MAX_PARTS + 1));
        assert!(found.tiles.iter().any(|tile| tile.label.starts_with("base, no package, others: ")));
        let found = draw(&Weights::new(), &[], &[]);
        assert!(found.frames.is_empty() && found.tiles.is_empty());
    }
}
