//! The formats that results are given in.

use std::path::Path;

use clap::ValueEnum;

use crate::cli::values::word;

/// Formats of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables, and plots on a terminal
    Text,
    /// Everything, with its provenance
    Json,
    /// One line per item
    Csv,
    /// Tables for documents
    Markdown,
    /// A vector image
    Svg,
    /// One page that opens offline
    Html,
    /// Findings for code scanning in CI (SARIF 2.1.0)
    Sarif,
    /// Findings for monitoring (Prometheus text)
    Prometheus,
    /// A plan as a shell script
    Shell,
    /// A plan as an Ansible playbook
    Ansible,
}

impl Format {
    /// As typed.
    pub fn name(self) -> String {
        word(&self)
    }

    /// The format that belongs to a file name extension.
    pub(super) fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "md" => Some(Self::Markdown),
            "svg" => Some(Self::Svg),
            "html" | "htm" => Some(Self::Html),
            "sarif" => Some(Self::Sarif),
            "prom" => Some(Self::Prometheus),
            "sh" => Some(Self::Shell),
            "yml" | "yaml" => Some(Self::Ansible),
            _ => None,
        }
    }
}

/// Is it a file for a bitmap image, which no result is?
pub(super) fn is_bitmap(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.to_ascii_lowercase().as_str())
    })
}

/// Forms of results without charts.
pub const TABLES: [Format; 5] = [Format::Text, Format::Json, Format::Csv, Format::Markdown, Format::Html];
/// Forms of results with charts.
pub const CHARTS: [Format; 6] = [
    Format::Text,
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::Svg,
    Format::Html,
];
/// Forms of plans.
pub const PLANS: [Format; 7] = [
    Format::Text,
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::Html,
    Format::Shell,
    Format::Ansible,
];
/// Forms of findings.
pub const FINDINGS: [Format; 7] = [
    Format::Text,
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::Html,
    Format::Sarif,
    Format::Prometheus,
];
