//! JSON through one writer for all results: each writer of its own would be compiled again for every type in them.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A line for each value, indented.
    Indented,
    Line,
}

/// What has a form in JSON.
pub trait ToJson {
    /// Writes it, text and escapes in pieces of their own.
    ///
    /// # Errors
    /// If it has no such form, or cannot be written.
    fn write_json(&self, layout: Layout, out: &mut dyn Write) -> serde_json::Result<()>;
}

impl<T: Serialize> ToJson for T {
    fn write_json(&self, layout: Layout, out: &mut dyn Write) -> serde_json::Result<()> {
        let form = Form {
            indented: (layout == Layout::Indented).then(PrettyFormatter::new),
        };
        self.serialize(&mut Serializer::with_formatter(out, form))
    }
}

/// Indented, or compact.
struct Form {
    indented: Option<PrettyFormatter<'static>>,
}

/// Each part in the form that it is.
macro_rules! parts {
    ($($part:ident($($flag:ident)?),)+) => {
        $(fn $part<W: ?Sized + Write>(&mut self, out: &mut W $(, $flag: bool)?) -> io::Result<()> {
            match &mut self.indented {
                Some(form) => form.$part(out $(, $flag)?),
                None => CompactFormatter.$part(out $(, $flag)?),
            }
        })+
    };
}

impl Formatter for Form {
    parts! {
        begin_array(),
        end_array(),
        begin_array_value(is_first),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(is_first),
        begin_object_value(),
        end_object_value(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Layout, ToJson};

    fn written(value: &Value, layout: Layout) -> String {
        let mut out = Vec::new();
        value.write_json(layout, &mut out).expect("JSON");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn both_layouts_are_those_of_serde_json() {
        for value in [
            json!([]),
            json!({}),
            json!([1, [], {"a": {}, "b": ["x", null, 1.5, true]}]),
        ] {
            let indented = serde_json::to_string_pretty(&value).expect("JSON");
            assert_eq!(written(&value, Layout::Indented), indented);
            assert_eq!(written(&value, Layout::Line), value.to_string());
        }
    }
}
