//! The program's own readers of foreign files, for fuzzing: no command of the program uses this door.

use model::Envelope;
use serde_json::Value;

use crate::kinds::{WithResult, by_schema};
use crate::show::{CHARTS, Shape, show};
use draw::Look;

const PLAIN: Look = Look {
    width: 100,
    plot: true,
    ..Look::FILE
};

/// A result in every form of text that its kind has, by the form's name; none of what is no result.
pub fn result(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let json: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let schema = json["schema"].as_str().unwrap_or_default();
    by_schema(schema, Forms(bytes)).unwrap_or_default()
}

struct Forms<'a>(&'a [u8]);

impl WithResult for Forms<'_> {
    type Outcome = Vec<(String, Vec<u8>)>;

    fn with<T: Shape>(self) -> Self::Outcome {
        let Ok(result) = serde_json::from_slice::<Envelope<T>>(self.0) else {
            return Vec::new();
        };
        // Forms that are text; a picture is drawn from what SVG is.
        let forms = CHARTS.iter().filter(|form| T::FORMS.contains(form));
        let shown = forms.filter_map(|form| Some((form.name(), show(&result, *form, PLAIN).ok()?)));
        shown.collect()
    }
}
