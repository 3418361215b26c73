//! The seed's plots as SVG (section 4, Figures 8, 9 and 11): times of communication, computation and both over
//! processors or sizes, and the speedup, with both axes logarithmic.
use super::error::ModelError;
use super::tables::Row;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Width and height in pixels: two plots above each other.
const SIZE: (u32, u32) = (900, 1100);
/// Colours of the strategies; those of Okabe and Ito, which the colour-blind tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// A named table.
pub struct Curve<'a> {
    /// What it is of.
    pub name: String,
    /// Its lines.
    pub rows: &'a [Row],
}

/// The abscissa of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Processors.
    Processors,
    /// Sizes of the problem.
    Sizes,
}

impl Over {
    fn of(self, row: &Row) -> f64 {
        if self == Over::Processors { row.processors as f64 } else { row.size }
    }

    fn word(self) -> &'static str {
        if self == Over::Processors { "processors" } else { "problem size" }
    }
}

/// The plot of some tables as SVG.
///
/// # Errors
/// If there is nothing to draw.
pub fn svg(title: &str, over: Over, curves: &[Curve]) -> Result<String, ModelError> {
    let mut text = String::new();
    let failed = |error: &dyn std::fmt::Display| ModelError::Plot(error.to_string());
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let root = root.titled(title, ("sans-serif", 22)).map_err(|error| failed(&error))?;
        let (above, below) = root.split_vertically(620);
        times(&above, over, curves).map_err(|error| failed(&error))?;
        speedup(&below, over, curves).map_err(|error| failed(&error))?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The range of what is above 0, a little wider.
fn range(values: impl Iterator<Item = f64>) -> Result<std::ops::Range<f64>, String> {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return Err("there is nothing above 0".into());
    }
    Ok(if low == high { low / 2.0..high * 2.0 } else { low / 1.2..high * 1.2 })
}

fn times(area: &Area, over: Over, curves: &[Curve]) -> Drawn {
    let rows = || curves.iter().flat_map(|curve| curve.rows);
    let x = range(rows().map(|row| over.of(row)))?;
    // A communication time of a thousandth of the total is drawn, one of a millionth would flatten all others.
    let most = rows().map(|row| row.total_s).fold(0.0, f64::max);
    let y = range(rows().flat_map(|row| [row.comm_s, row.comp_s, row.total_s]).filter(|s| *s > most * 1e-6))?;
    // Below the curves there is room for the names of all.
    let room = (0.035 * (3 * curves.len()) as f64 + 0.04).min(0.5);
    let shown = y.start * (y.start / y.end).powf(room / (1.0 - room))..y.end;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(86)
        .build_cartesian_2d(x.log_scale(), shown.log_scale())?;
    let grid = RGBColor(225, 225, 225);
    let seconds = |value: &f64| number(*value);
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(5).x_desc(over.word()).y_desc("time in seconds").light_line_style(WHITE).bold_line_style(grid);
    mesh.x_label_formatter(&seconds).y_label_formatter(&seconds).label_style(("sans-serif", 15)).draw()?;
    type Pick = fn(&Row) -> f64;
    let kinds: [(&str, Pick, u32, usize); 3] = [
        ("total", |row| row.total_s, 3, 0),
        ("computation", |row| row.comp_s, 1, 0),
        ("communication", |row| row.comm_s, 1, 5),
    ];
    for (at, curve) in curves.iter().enumerate() {
        for (kind, pick, width, gap) in kinds {
            let style = COLOURS[at % COLOURS.len()].stroke_width(width);
            let points: Vec<(f64, f64)> =
                curve.rows.iter().map(|row| (over.of(row), pick(row))).filter(|(_, t)| *t >= y.start).collect();
            let name = if curves.len() == 1 { kind.to_owned() } else { format!("{}: {kind}", curve.name) };
            let series = match gap {
                0 => chart.draw_series(LineSeries::new(points, style))?,
                gap => chart.draw_series(DashedLineSeries::new(points, gap as u32, 4, style))?,
            };
            let thickness = if gap > 0 { 1 } else { width };
            series
                .label(if gap > 0 { format!("{name} (dashed)") } else { name })
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style.stroke_width(thickness)));
        }
    }
    legend(&mut chart, SeriesLabelPosition::LowerLeft)
}

fn speedup(area: &Area, over: Over, curves: &[Curve]) -> Drawn {
    let rows = || curves.iter().flat_map(|curve| curve.rows);
    let x = range(rows().map(|row| over.of(row)))?;
    let ideal = rows().map(|row| row.processors as f64).fold(1.0, f64::max);
    let y = range(rows().map(|row| row.speedup).chain([1.0, if over == Over::Processors { ideal } else { 1.0 }]))?;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(86)
        .build_cartesian_2d(x.log_scale(), y.log_scale())?;
    let plain = |value: &f64| number(*value);
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(5)
        .x_desc(over.word())
        .y_desc("speedup")
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225));
    mesh.x_label_formatter(&plain).y_label_formatter(&plain).label_style(("sans-serif", 15)).draw()?;
    if over == Over::Processors {
        let line = rows().map(|row| (row.processors as f64, row.processors as f64));
        let mut line: Vec<(f64, f64)> = line.collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.draw_series(DashedLineSeries::new(line, 3, 4, RGBColor(150, 150, 150).stroke_width(1)))?;
    }
    for (at, curve) in curves.iter().enumerate() {
        let style = COLOURS[at % COLOURS.len()].stroke_width(2);
        let points: Vec<(f64, f64)> = curve.rows.iter().map(|row| (over.of(row), row.speedup)).collect();
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(curve.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::combinators::LogCoord<f64>, plotters::coord::combinators::LogCoord<f64>>,
>;

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, at: SeriesLabelPosition) -> Drawn {
    let mut labels = chart.configure_series_labels();
    labels.position(at).background_style(WHITE.mix(0.8)).border_style(RGBColor(200, 200, 200));
    labels.label_font(("sans-serif", 14)).draw()?;
    Ok(())
}

/// A number of an axis.
fn number(value: f64) -> String {
    if (0.01..1e6).contains(&value) { format!("{}", (value * 1e4).round() / 1e4) } else { format!("{value:.0e}") }
}
