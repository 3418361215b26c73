//! Small plots as SVG: lines, areas, points and marks on two axes, linear or logarithmic.
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use std::ops::Range;

/// Width and height of one plot in pixels.
const SIZE: (u32, u32) = (860, 460);
/// Colours that can be told apart by the colour-blind (Okabe and Ito).
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
/// For what stands behind the rest: an ideal.
pub const GREY: RGBColor = RGBColor(153, 153, 153);

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Its ends.
    pub range: [f64; 2],
    /// Whether it is logarithmic, to the base 2.
    pub logarithmic: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + 1.0 };
        Axis { label: label.into(), range: [low, high], logarithmic: false }
    }

    /// A logarithmic axis; its ends are above 0.
    pub fn logarithmic(label: &str, low: f64, high: f64) -> Axis {
        let low = low.max(1e-12);
        let high = if high > low { high } else { 2.0 * low };
        Axis { label: label.into(), range: [low, high], logarithmic: true }
    }

    /// Where a value lies: itself or its logarithm, within the axis.
    fn place(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        let value = value.clamp(low, high);
        if self.logarithmic { value.log2() } else { value }
    }

    /// Places with a number.
    fn marks(&self) -> Vec<f64> {
        let [low, high] = self.range;
        if self.logarithmic {
            let (from, to) = (low.log2().ceil() as i32, high.log2().floor() as i32);
            let by = ((to - from) / 10 + 1) as usize;
            return (from..=to).step_by(by).map(f64::from).collect();
        }
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (low / step).ceil() as i64;
        (0..20).map(|i| (first + i) as f64 * step).take_while(|mark| *mark <= high * (1.0 + 1e-9)).collect()
    }

    fn number(&self, place: f64) -> String {
        number(if self.logarithmic { place.exp2() } else { place })
    }
}

/// The places of an axis, for the plotting library.
struct Places {
    ends: [f64; 2],
    marks: Vec<f64>,
}

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, pixels: (i32, i32)) -> i32 {
        let [low, high] = self.ends;
        pixels.0 + ((place - low) / (high - low) * f64::from(pixels.1 - pixels.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends[0]..self.ends[1]
    }
}

/// What is drawn, in places of the axes.
enum Shape {
    Line {
        dashed: bool,
    },
    /// Filled, so much of it to be seen.
    Area(f64),
    Points,
    Mark(String),
}

struct Element {
    name: String,
    colour: RGBColor,
    shape: Shape,
    at: Vec<(f64, f64)>,
}

/// A plot under way.
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    elements: Vec<Element>,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: &str, x: Axis, y: Axis) -> Plot {
        Plot { title: clean(title), x, y, elements: Vec::new() }
    }

    fn add(&mut self, name: &str, colour: RGBColor, shape: Shape, points: impl Iterator<Item = (f64, f64)>) {
        let drawn = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let at: Vec<(f64, f64)> = drawn.map(|(x, y)| (self.x.place(x), self.y.place(y))).collect();
        self.elements.push(Element { name: clean(name), colour, shape, at });
    }

    /// A line; with a name in the legend if it has one.
    pub fn line(&mut self, name: &str, colour: RGBColor, dashed: bool, points: impl Iterator<Item = (f64, f64)>) {
        self.add(name, colour, Shape::Line { dashed }, points);
    }

    /// The area between points and the axis.
    pub fn area(&mut self, name: &str, colour: RGBColor, points: impl Iterator<Item = (f64, f64)> + Clone) {
        let low = self.y.range[0];
        let ends = points.clone().next().zip(points.clone().last());
        let Some((first, last)) = ends else { return };
        let around = [(first.0, low)].into_iter().chain(points).chain([(last.0, low)]);
        self.add(name, colour, Shape::Area(0.3), around);
    }

    /// The area between two lines: places with their low and high ends.
    pub fn band(&mut self, name: &str, colour: RGBColor, points: &[(f64, [f64; 2])]) {
        let there = points.iter().map(|(x, y)| (*x, y[0]));
        let around = there.chain(points.iter().rev().map(|(x, y)| (*x, y[1])));
        self.add(name, colour, Shape::Area(0.18), around);
    }

    /// Points.
    pub fn points(&mut self, name: &str, colour: RGBColor, points: impl Iterator<Item = (f64, f64)>) {
        self.add(name, colour, Shape::Points, points);
    }

    /// A vertical line with a word at its head.
    pub fn mark(&mut self, x: f64, word: &str) {
        let ends = self.y.range.map(|y| (x, y));
        self.add("", GREY, Shape::Mark(word.into()), ends.into_iter());
    }

    /// The plot as a document of its own.
    pub fn svg(&self) -> String {
        stacked(std::slice::from_ref(self))
    }

    /// The corner in which the least is drawn.
    fn corner(&self) -> SeriesLabelPosition {
        use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
        let [x, y] = [&self.x, &self.y].map(|axis| axis.range.map(|end| axis.place(end)));
        let share = |at: f64, [low, high]: [f64; 2]| (at - low) / (high - low);
        let within = |right: bool, up: bool| {
            let near = |share: f64, far: bool| if far { share > 0.6 } else { share < 0.4 };
            let points = self.elements.iter().flat_map(|element| &element.at);
            points.filter(|at| near(share(at.0, x), right) && near(share(at.1, y), up)).count()
        };
        let corners =
            [(UpperLeft, false, true), (LowerLeft, false, false), (UpperRight, true, true), (LowerRight, true, false)];
        let least = corners.into_iter().min_by_key(|(_, right, up)| within(*right, *up));
        least.map_or(UpperLeft, |(corner, ..)| corner)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend, Shift>) -> Result<(), Box<dyn std::error::Error>> {
        let range = |axis: &Axis| Places { ends: axis.range.map(|end| axis.place(end)), marks: axis.marks() };
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 15))
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(range(&self.x), range(&self.y))?;
        let (x_number, y_number) = (|place: &f64| self.x.number(*place), |place: &f64| self.y.number(*place));
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230));
        mesh.x_label_formatter(&x_number).y_label_formatter(&y_number).label_style(("sans-serif", 12)).draw()?;
        for Element { name, colour, shape, at } in &self.elements {
            let colour = *colour;
            let series = match shape {
                Shape::Line { dashed: false } => {
                    chart.draw_series(LineSeries::new(at.clone(), colour.stroke_width(2)))?
                }
                Shape::Line { dashed: true } => {
                    chart.draw_series(DashedLineSeries::new(at.clone(), 6, 4, colour.stroke_width(2)))?
                }
                Shape::Area(share) => chart.draw_series([Polygon::new(at.clone(), colour.mix(*share).filled())])?,
                Shape::Points => chart.draw_series(at.iter().map(|at| Circle::new(*at, 4, colour.filled())))?,
                Shape::Mark(word) => {
                    let head = at.last().copied().unwrap_or_default();
                    chart.draw_series([Text::new(word.clone(), head, ("sans-serif", 12))])?;
                    chart.draw_series(LineSeries::new(at.clone(), colour.stroke_width(1)))?
                }
            };
            if !name.is_empty() {
                series.label(name).legend(move |(x, y)| Rectangle::new([(x, y - 3), (x + 16, y + 3)], colour.filled()));
            }
        }
        if self.elements.iter().any(|element| !element.name.is_empty()) {
            let mut labels = chart.configure_series_labels();
            labels.background_style(WHITE.mix(0.8)).border_style(GREY).label_font(("sans-serif", 12));
            labels.position(self.corner()).draw()?;
        }
        Ok(())
    }
}

/// Plots below each other in one document.
///
/// # Panics
/// Never: text takes whatever is drawn.
pub fn stacked(plots: &[Plot]) -> String {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (SIZE.0, SIZE.1 * plots.len() as u32)).into_drawing_area();
        root.fill(&WHITE).expect("text takes it");
        for (plot, area) in plots.iter().zip(root.split_evenly((plots.len().max(1), 1))) {
            plot.draw(&area).expect("text takes it");
        }
        root.present().expect("text takes it");
    }
    text
}

/// Text for XML, in which control characters are none.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if !(1e-3..1e5).contains(&v) => format!("{value:.0e}"),
        v if v >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.3}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_within_the_axis() {
        assert_eq!(Axis::linear("", 0.0, 12.0).marks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(Axis::logarithmic("", 1.0, 16.0).marks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Axis::logarithmic("", 1.0, 16.0).number(3.0), "8");
    }

    #[test]
    fn names_cannot_end_an_element() {
        let mut plot = Plot::new("<b>&\u{1}", Axis::linear("x", 0.0, 1.0), Axis::logarithmic("y", 0.1, 1.0));
        plot.line("a<b", COLOURS[0], true, [(0.0, f64::NAN), (0.0, 0.5), (1.0, 1.0)].into_iter());
        plot.area("", COLOURS[1], [(0.0, 0.5), (2.0, f64::INFINITY), (1.0, 0.2)].into_iter());
        plot.mark(0.5, "</svg>");
        plot.points("", GREY, std::iter::empty());
        let svg = plot.svg();
        assert!(!svg.contains("<b>") && !svg.contains("NaN") && svg.contains("a&lt;b"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1, "{svg}");
        assert!(!svg.contains('\u{1}'));
    }
}
