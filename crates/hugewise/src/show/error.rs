//! Why a result could not be shown, in words that say what to write instead.

use std::io;
use std::path::PathBuf;

use draw::PictureError;

/// What to do for a bitmap image.
const NO_BITMAP: &str =
    "images are SVG (write FILE.svg; for a bitmap convert it: rsvg-convert FILE.svg --output FILE.png)";

/// Why a result could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    #[error("--format {format}: this result has no such format (write {})", known.join(", "))]
    NoSuchForm { format: String, known: Vec<String> },
    #[error("--output {}: {NO_BITMAP}", file.display())]
    Bitmap { file: PathBuf },
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error("there is no chart to draw: no point was measured (use --format text to see why)")]
    NoChart,
    #[error("--chart {name}: this result has no such chart (it has {})", known.join(", "))]
    NoSuchChart { name: String, known: Vec<String> },
    #[error("the result could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The script would do something other than what a reader sees.
    #[error("this plan holds characters that a terminal does not show as they are; no script is made of it")]
    Hostile,
    #[error("the result could not be written: {0}")]
    Io(#[from] io::Error),
}
