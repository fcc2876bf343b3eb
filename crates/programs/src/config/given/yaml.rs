//! YAML as a tree whose nodes know their line. Anchors are not followed: their copies could grow without bound.

use std::rc::Rc;

use model::{Cause, Unread};
use saphyr_parser::{Event, Parser};

use super::garbled::garbled;
use crate::config::Setting;

/// A node, its file, and the line that it begins on, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) path: Rc<str>,
    pub(super) line: usize,
    /// The line of its key in a map, which is before that of a map or list below it; else its own.
    pub(super) key_line: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// A reference to another place.
    Alias,
}

impl Node {
    /// `FILE:LINE`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    /// A setting with its text as the value.
    pub(super) fn setting(&self, name: impl Into<String>) -> Option<Setting> {
        Some(Setting::new(self.place(), name, self.text()?))
    }

    /// Its text is not what it should be.
    pub(super) fn garbled(&self, wanted: &str) -> Unread {
        garbled(&self.path, self.line, self.text().unwrap_or_default(), wanted)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)
    }

    /// The value behind several keys.
    pub(super) fn at(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The text behind a key.
    pub(super) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// The items behind a key.
    pub(super) fn items_of(&self, key: &str) -> &[Node] {
        self.get(key).map_or(&[], Node::items)
    }

    /// Kind and API group of an object of Kubernetes.
    pub(super) fn object(&self) -> (&str, &str) {
        let text = |key| self.text_of(key).unwrap_or_default();
        (text("kind"), text("apiVersion").split('/').next().unwrap_or_default())
    }

    pub(super) fn entries(&self) -> &[(String, Node)] {
        match &self.what {
            What::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Node] {
        match &self.what {
            What::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A list or map that is still open.
struct Open {
    line: usize,
    items: Vec<Node>,
    is_map: bool,
}

impl Open {
    /// Items of a map are keys and values in turn.
    fn close(self) -> What {
        if !self.is_map {
            return What::List(self.items);
        }
        let mut items = self.items.into_iter();
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let key_line = key.line;
            entries.push((key.text().unwrap_or_default().to_owned(), Node { key_line, ..value }));
        }
        What::Map(entries)
    }
}

/// Deeper nesting than in any file of Kubernetes; a tree is dropped level by level.
const DEEPEST: usize = 64;

pub(super) fn documents(path: &str, text: &str) -> Result<Vec<Node>, Unread> {
    let refused = |line: usize, why: &str| Unread::new(Cause::Garbled, format!("{path}:{line}"), why);
    let (mut documents, mut open) = (Vec::new(), Vec::<Open>::new());
    let path: Rc<str> = path.into();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| refused(error.marker().line(), error.info()))?;
        let mut line = span.start.line();
        let what = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEEPEST => {
                return Err(refused(line, "it is nested too deeply"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_map = matches!(event, Event::MappingStart(..));
                let items = Vec::new();
                open.push(Open { line, items, is_map });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(ended) = open.pop() else { continue };
                line = ended.line;
                ended.close()
            }
            Event::Scalar(text, ..) => What::Text(text.into_owned()),
            Event::Alias(_) => What::Alias,
            _ => continue,
        };
        let node = Node {
            path: Rc::clone(&path),
            line,
            key_line: line,
            what,
        };
        match open.last_mut() {
            Some(parent) => parent.items.push(node),
            None => documents.push(node),
        }
    }
    Ok(documents)
}
