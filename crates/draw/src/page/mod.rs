//! A result as one HTML page: opens offline, prints, and reads on a phone.

mod drawing;

use std::fmt;
use std::io::{self, Write};

use askama::Template;

use model::Envelope;

use self::drawing::Drawing;
use super::charts::{Figure, PictureError, TONES, Tone};
use super::heat::Heat;
use super::json::{Layout, ToJson};
use super::long::Long;
use super::provenance;
use super::safe::{self, Pieces};
use super::sheet::Sheet;

/// A part of a page.
#[derive(Debug)]
pub enum Block {
    Sheet(Sheet),
    Figure(Figure),
}

impl Block {
    pub fn sheet(self) -> Option<Sheet> {
        match self {
            Self::Sheet(sheet) => Some(sheet),
            Self::Figure(_) => None,
        }
    }

    pub fn figure(self) -> Option<Figure> {
        match self {
            Self::Sheet(_) => None,
            Self::Figure(figure) => Some(figure),
        }
    }
}

/// What stands on a page, from top to bottom.
pub struct Content<'a> {
    pub title: String,
    pub headlines: Vec<String>,
    pub blocks: Vec<Block>,
    /// What is for specialists: behind the blocks, and folded.
    pub folded: Vec<Block>,
    /// A table behind the blocks that may be very long; it is written as it is made, as is the result itself.
    pub long: Option<Long<'a>>,
    pub about: &'a Envelope<()>,
    pub json: &'a dyn ToJson,
}

impl Content<'_> {
    /// Draws the charts, and gives back what writes the page; everything in it that comes from the machine is escaped by the template.
    ///
    /// # Errors
    /// If a chart cannot be drawn.
    pub fn page(mut self) -> Result<impl FnOnce(&mut dyn Write) -> io::Result<()>, PictureError> {
        let drawn = |blocks: &mut Vec<Block>| blocks.drain(..).map(Part::of).collect::<Result<Vec<_>, _>>();
        let (parts, folded) = (drawn(&mut self.blocks)?, drawn(&mut self.folded)?);
        Ok(move |out: &mut dyn Write| {
            let page = Page {
                content: &self,
                parts: &parts,
                folded: &folded,
                warnings: &provenance::warnings(self.about),
                provenance: &provenance::provenance(self.about),
                palette: &palette(),
                style: include_str!("page.css"),
                script: include_str!("page.js"),
                json: &Embedded(self.json),
            };
            page.write_into(&mut safe::lines_to(out))?;
            out.write_all(b"\n")
        })
    }
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
            Block::Figure(figure) => Self::Chart(Box::new(Drawing::of(figure)?)),
        })
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a, 'r> {
    content: &'a Content<'r>,
    parts: &'a [Part],
    folded: &'a [Part],
    warnings: &'a Option<Sheet>,
    provenance: &'a Sheet,
    palette: &'a str,
    style: &'a str,
    script: &'a str,
    json: &'a dyn fmt::Display,
}

/// A result as JSON that cannot end the script element it stands in.
struct Embedded<'a>(&'a dyn ToJson);

impl fmt::Display for Embedded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut script = Pieces(|text: &str| {
            let text = safe::json(text).replace('<', "\\u003c");
            f.write_str(&text).map_err(io::Error::other)
        });
        let written = self.0.write_json(Layout::Line, &mut script);
        written.map_err(|_| fmt::Error)
    }
}

/// The colours of page kinds and of heat maps as CSS variables, on light and on dark ground.
fn palette() -> String {
    let variables = |kind: fn(&Tone) -> [u8; 3], heat: fn(Heat) -> [u8; 3]| -> String {
        let kinds = TONES.iter().map(|tone| ('k', tone.index, kind(tone)));
        let heats = Heat::all().map(|shade| ('h', shade.index(), heat(shade)));
        let variable = |(letter, index, color)| format!("--{letter}{index}:{};", drawing::hex(color));
        kinds.chain(heats).map(variable).collect()
    };
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        variables(|tone| tone.light, Heat::light),
        variables(|tone| tone.dark, Heat::dark)
    )
}
