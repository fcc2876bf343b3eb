//! What a result says of itself: its shape, its tables and charts, and from them its text.

use model::Envelope;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::format::Format;
use draw::{Block, Figure, Lines, Long, Look, Sheet, ToJson, joined, layout, terminal};

/// The longest lines of prose.
const READABLE: u16 = 100;
/// The shape of a result: its published name and version, its forms, and JSON both ways.
pub trait Shape: Show + Serialize + DeserializeOwned + JsonSchema {
    /// Its name in `hugewise/NAME/VERSION`.
    const NAME: &'static str;
    /// The version of its shape.
    const VERSION: u32;
    /// The oldest version that reads as this one: versions since then only added to it.
    const OLDEST: u32 = Self::VERSION;
    /// The forms it has.
    const FORMS: &'static [Format];
}

/// A result that can be shown in every form it has.
pub trait Show {
    /// One line on what it is.
    fn title(&self) -> String;
    /// The answer in a few sentences; often none.
    fn headlines(&self) -> Vec<String> {
        Vec::new()
    }
    /// Its tables.
    fn sheets(&self) -> Vec<Sheet>;
    /// A table after those that may be very long, and is not among them.
    fn long(&self) -> Option<Long<'_>> {
        None
    }
    /// Those tables that fit on a terminal.
    fn brief_sheets(&self) -> Vec<Sheet> {
        self.sheets()
    }
    fn text(&self, look: Look) -> String {
        text(self, look)
    }
    /// In a form that only results of its kind have: findings for machines, a plan to run.
    fn own(&self, _about: &Envelope<()>, _format: Format) -> Option<String> {
        None
    }
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
    /// Its page from top to bottom: heat maps, charts, tables.
    fn blocks(&self) -> Vec<Block> {
        let (maps, tables): (Vec<Sheet>, Vec<Sheet>) = self.sheets().into_iter().partition(Sheet::is_heat_map);
        let figures = self.figures().into_iter().map(Block::Figure);
        let maps = maps.into_iter().map(Block::Sheet);
        let tables = tables.into_iter().map(Block::Sheet);
        maps.chain(figures).chain(tables).collect()
    }
    /// What of its page is for specialists.
    fn folded(&self) -> Vec<Block> {
        Vec::new()
    }
    /// Its tables as CSV by name, where one table does not hold them.
    fn tables(&self) -> Vec<(&'static str, Lines<'_>)> {
        vec![("", self.csv())]
    }
    /// Its items as CSV.
    fn csv(&self) -> Lines<'_>;
}

/// A result on its way into a form. All kinds take the same way, so that the program holds it once.
pub(crate) struct View<'a> {
    pub(crate) about: Envelope<()>,
    pub(crate) data: &'a dyn Show,
    /// What writes it as JSON.
    pub(crate) json: &'a dyn ToJson,
}

impl<'a> View<'a> {
    pub(crate) fn of<T: Shape>(result: &'a Envelope<T>) -> Self {
        Self {
            about: result.about(),
            data: &result.data,
            json: result,
        }
    }
}

/// Headlines, tables, and plots where the look wants them.
pub(crate) fn text<T: Show + ?Sized>(data: &T, look: Look) -> String {
    let headlines = data.headlines().into_iter().map(|line| wrapped(&line, look.width));
    let sheets = data.brief_sheets().into_iter().map(|sheet| sheet.text(look));
    let figures = if look.plot { data.figures() } else { Vec::new() };
    let plots = figures.iter().map(|figure| terminal::plot(figure, look));
    joined(headlines.chain(sheets).chain(plots), "\n")
}

/// A sentence in lines that are good to read.
pub(crate) fn wrapped(text: &str, width: u16) -> String {
    layout::wrapped(text, width.min(READABLE))
}
