//! Polynomials on stretches of a series: least squares that take one point after the other (Givens rotations), so that
//! the error of every stretch from a point on is known after one pass.

/// The least-squares fit of a polynomial to a growing stretch.
#[derive(Clone, Debug)]
pub struct Growing {
    degree: usize,
    /// The triangle of the factorisation with the right side behind each row.
    rows: Vec<f64>,
    count: usize,
    squares: f64,
    /// Places are measured in this many points, so that powers stay small.
    scale: f64,
}

impl Growing {
    /// A fit to no points yet; `scale` is about how many points will come.
    pub fn new(degree: usize, scale: usize) -> Growing {
        let columns = degree + 1;
        let rows = vec![0.0; columns * (columns + 1)];
        Growing { degree, rows, count: 0, squares: 0.0, scale: scale.max(1) as f64 }
    }

    /// Takes the next point. The sum of squares of what is left never falls.
    pub fn push(&mut self, value: f64) {
        let columns = self.degree + 1;
        let width = columns + 1;
        let x = self.count as f64 / self.scale;
        let mut row = [0.0; super::HIGHEST + 2];
        let mut power = 1.0;
        for cell in &mut row[..columns] {
            *cell = power;
            power *= x;
        }
        row[columns] = value;
        for k in 0..columns {
            let (a, b) = (self.rows[k * width + k], row[k]);
            let r = a.hypot(b);
            if r <= 1e-14 {
                continue;
            }
            let (cos, sin) = (a / r, b / r);
            for (above, below) in self.rows[k * width + k..(k + 1) * width].iter_mut().zip(&mut row[k..width]) {
                (*above, *below) = (cos * *above + sin * *below, cos * *below - sin * *above);
            }
        }
        self.count += 1;
        if self.count > columns {
            self.squares += row[columns] * row[columns];
        }
    }

    /// The sum of squares of what the polynomial leaves.
    pub fn squares(&self) -> f64 {
        self.squares
    }

    /// The coefficients, of powers of the place in points from the start of the stretch. Of fewer points than
    /// coefficients, the higher ones are 0.
    pub fn coefficients(&self) -> Vec<f64> {
        let columns = self.degree + 1;
        let width = columns + 1;
        let known = self.count.min(columns);
        let mut c = vec![0.0; columns];
        for k in (0..known).rev() {
            let rest: f64 = (k + 1..known).map(|column| self.rows[k * width + column] * c[column]).sum();
            let pivot = self.rows[k * width + k];
            c[k] = if pivot.abs() > 1e-12 { (self.rows[k * width + columns] - rest) / pivot } else { 0.0 };
        }
        let mut scale = 1.0;
        for c in &mut c {
            *c /= scale;
            scale *= self.scale;
        }
        c
    }
}

/// The fit to the whole of a stretch.
pub fn fit(values: &[f64], degree: usize) -> Growing {
    let mut growing = Growing::new(degree, values.len());
    values.iter().for_each(|value| growing.push(*value));
    growing
}

/// Where a greedy choice of stretches ends, each as long as its sum of squares stays within `most`; none if that takes
/// more than `count` of them.
pub fn greedy(values: &[f64], degree: usize, most: f64, count: usize) -> Option<Vec<usize>> {
    let mut ends = Vec::new();
    let mut growing = Growing::new(degree, values.len());
    for (at, value) in values.iter().enumerate() {
        growing.push(*value);
        if growing.squares() > most {
            ends.push(at);
            if ends.len() >= count {
                return None;
            }
            growing = Growing::new(degree, values.len());
            growing.push(*value);
        }
    }
    if !values.is_empty() {
        ends.push(values.len());
    }
    Some(ends)
}
