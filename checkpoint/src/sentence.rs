//! An error in one sentence.

/// The error and its causes, leaving out what a sentence already says.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{}: {cause}", text.trim_end_matches('.'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_image::ImageError;
    use std::path::PathBuf;

    #[test]
    fn causes_are_told_once() {
        let source = std::io::Error::other("no space");
        let inner = ImageError::Io { path: PathBuf::from("a"), action: "write", source };
        let error = anyhow::Error::new(inner).context("the image is lost.");
        assert_eq!(sentence(&error), "the image is lost: cannot write a: no space");
    }
}
