//! A result as one HTML page: opens offline, prints, and reads on a phone.

mod chart;

use std::fmt;
use std::io::{self, Write};

use askama::Template;

use self::chart::Drawing;
use super::heat::Heat;
use super::ink::PictureError;
use super::json::{Layout, ToJson};
use super::long::Long;
use super::provenance;
use super::safe;
use super::sheet::Sheet;
use super::tone::{TONES, Tone};
use crate::show::{Block, ShowError, View};

/// Writes the page of a result; everything in it that comes from the machine is escaped by the template. Long tables and the
/// result itself are written as they are made.
pub(crate) fn write(view: &View<'_>, out: &mut dyn Write) -> Result<(), ShowError> {
    let View { about, data, json } = view;
    let blocks: Result<Vec<Part>, _> = data.blocks().into_iter().map(Part::of).collect();
    let page = Page {
        title: &data.title(),
        headlines: &data.headlines(),
        lead: &data.lead(),
        parts: &blocks?,
        long: &data.long(),
        warnings: &provenance::warnings(about),
        provenance: &provenance::provenance(about),
        machine: &format!("{}, kernel {}", about.machine.cpu, about.machine.kernel),
        program: &format!("{} {}", about.tool.name, about.tool.version),
        started: &about.started,
        palette: &palette(),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        json: &Embedded(*json),
    };
    page.write_into(&mut safe::Lines(&mut *out))?;
    Ok(out.write_all(b"\n")?)
}

/// A table, or a chart as it is drawn.
enum Part {
    Table(Sheet),
    Chart(Box<Drawing>),
}

impl Part {
    fn of(block: Block) -> Result<Self, PictureError> {
        Ok(match block {
            Block::Sheet(sheet) => Self::Table(sheet),
            Block::Figure(figure) => Self::Chart(Box::new(chart::draw(&figure)?)),
        })
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a, 'r> {
    title: &'a str,
    headlines: &'a [String],
    lead: &'a Option<Sheet>,
    parts: &'a [Part],
    long: &'a Option<Long<'r>>,
    warnings: &'a Option<Sheet>,
    provenance: &'a Sheet,
    machine: &'a str,
    program: &'a str,
    started: &'a str,
    palette: &'a str,
    style: &'a str,
    script: &'a str,
    json: &'a dyn fmt::Display,
}

/// A result as JSON that cannot end the script element it stands in.
struct Embedded<'a>(&'a dyn ToJson);

impl fmt::Display for Embedded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.0.write_json(Layout::Line, &mut safe::Json(InScript(f)));
        written.map_err(|_| fmt::Error)
    }
}

struct InScript<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for InScript<'_, '_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(piece).map_err(io::Error::other)?;
        let mut parts = text.split('<');
        self.0
            .write_str(parts.next().unwrap_or_default())
            .map_err(io::Error::other)?;
        for part in parts {
            write!(self.0, "\\u003c{part}").map_err(io::Error::other)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The colours of page kinds and of heat maps as CSS variables, on light and on dark ground.
fn palette() -> String {
    let variables = |kind: fn(&Tone) -> [u8; 3], heat: fn(Heat) -> [u8; 3]| -> String {
        let kinds = TONES.iter().map(|tone| ('k', tone.index, kind(tone)));
        let heats = Heat::all().map(|shade| ('h', shade.index(), heat(shade)));
        let variable = |(letter, index, color)| format!("--{letter}{index}:{};", chart::hex(color));
        kinds.chain(heats).map(variable).collect()
    };
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        variables(|tone| tone.light, Heat::light),
        variables(|tone| tone.dark, Heat::dark)
    )
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
