//! YAML as a tree whose nodes know their line. Anchors are not followed: their copies could grow without bound.

use model::{Cause, Unread};
use saphyr_parser::{Event, Parser};

/// A node and the line that it begins on, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
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
    fn new(line: usize, what: What) -> Self {
        let key_line = line;
        Self { line, key_line, what }
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
    fn close(self) -> Node {
        let line = self.line;
        if !self.is_map {
            return Node::new(line, What::List(self.items));
        }
        let mut items = self.items.into_iter();
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let key_line = key.line;
            entries.push((key.text().unwrap_or_default().to_owned(), Node { key_line, ..value }));
        }
        Node::new(line, What::Map(entries))
    }
}

/// Deeper nesting than in any file of Kubernetes; a tree is dropped level by level.
const DEEPEST: usize = 64;

pub(super) fn documents(path: &str, text: &str) -> Result<Vec<Node>, Unread> {
    let garbled = |line: usize, why: &str| Unread::new(Cause::Garbled, format!("{path}:{line}"), why);
    let (mut documents, mut open) = (Vec::new(), Vec::<Open>::new());
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| garbled(error.marker().line(), error.info()))?;
        let line = span.start.line();
        let node = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEEPEST => {
                return Err(garbled(line, "it is nested too deeply"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_map = matches!(event, Event::MappingStart(..));
                let items = Vec::new();
                open.push(Open { line, items, is_map });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(ended) => ended.close(),
                None => continue,
            },
            Event::Scalar(text, ..) => Node::new(line, What::Text(text.into_owned())),
            Event::Alias(_) => Node::new(line, What::Alias),
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.items.push(node),
            None => documents.push(node),
        }
    }
    Ok(documents)
}
