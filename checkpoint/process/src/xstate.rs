//! Extended processor state in signal frames.
