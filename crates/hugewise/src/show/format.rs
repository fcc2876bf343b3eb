//! The formats that results are given in.

use std::path::Path;

use clap::ValueEnum;

use self::Format::{Ansible, Csv, Html, Json, Markdown, Prometheus, Sarif, Shell, Svg, Text};
use crate::cli::values::word;

model::table! {
    /// Formats of a result, each with the extensions of its files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub enum Format: &'static [&'static str] {
        /// Tables, and plots on a terminal
        Text = &["txt"],
        /// Everything, with its provenance
        Json = &["json"],
        /// One line per item
        Csv = &["csv"],
        /// Tables for documents
        Markdown = &["md"],
        /// A vector image
        Svg = &["svg"],
        /// One page that opens offline
        Html = &["html", "htm"],
        /// Findings for code scanning in CI (SARIF 2.1.0)
        Sarif = &["sarif"],
        /// Findings for monitoring (Prometheus text)
        Prometheus = &["prom"],
        /// A plan as a shell script
        Shell = &["sh"],
        /// A plan as an Ansible playbook
        Ansible = &["yml", "yaml"],
    }
}

impl Format {
    /// As typed.
    pub fn name(self) -> String {
        word(&self)
    }

    /// The format that belongs to a file name extension.
    pub(super) fn of_file(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        let mut formats = Self::ALL.into_iter();
        formats.find(|format| format.row().contains(&extension.as_str()))
    }

    /// Can results of a series follow each other in one file? `sample` writes them so.
    pub(crate) fn is_series(self) -> bool {
        matches!(self, Self::Json | Self::Csv)
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
pub const TABLES: [Format; 5] = [Text, Json, Csv, Markdown, Html];
/// Forms of results with charts.
pub const CHARTS: [Format; 6] = [Text, Json, Csv, Markdown, Svg, Html];
/// Forms of plans.
pub const PLANS: [Format; 7] = [Text, Json, Csv, Markdown, Html, Shell, Ansible];
/// Forms of findings.
pub const FINDINGS: [Format; 7] = [Text, Json, Csv, Markdown, Html, Sarif, Prometheus];
