//! The graph spectrum test (seed 002, section 2): isomorphic graphs have the same eigenvalues.
use super::graph::Graph;
use nalgebra::DMatrix;

/// The eigenvalues of a graph's adjacency matrix, ascending.
pub fn of(graph: &Graph) -> Vec<f64> {
    let n = graph.vertices();
    if n == 0 {
        return Vec::new();
    }
    let mut matrix = DMatrix::<f64>::zeros(n, n);
    for a in 0..n as u32 {
        for &b in graph.neighbours(a) {
            matrix[(a as usize, b as usize)] = 1.0;
        }
    }
    let mut values = matrix.symmetric_eigenvalues().as_slice().to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Whether two spectra are the same up to rounding. Eigenvalues are found within some 1e-14 times the largest degree
/// times the number of vertices.
pub fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * (1.0 + a.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spectra_that_are_known() {
        let path = Graph::new(3, [(0, 1), (1, 2)]);
        assert!(same(&of(&path), &[-2f64.sqrt(), 0.0, 2f64.sqrt()]));
        let triangle = Graph::new(3, [(0, 1), (1, 2), (0, 2)]);
        assert!(same(&of(&triangle), &[-1.0, -1.0, 2.0]));
        assert!(!same(&of(&path), &of(&triangle)));
        assert!(of(&Graph::new(0, [])).is_empty());
    }
}
