//! Text on a given width: prose breaks between words, tables between cells. Nothing that a reader copies is ever broken.

use std::iter;

use anstyle::{AnsiColor, RgbColor, Style};
use unicode_width::UnicodeWidthStr;

use super::heat::Heat;
use super::look::{Look, WIDE};
use super::sheet::{Column, Sheet};

/// Between two cells, each of which has a blank on both sides.
const GAP: usize = 3;
/// Columns that prose gets at least, where it has as much to say.
const PROSE: usize = 16;
/// Cells of up to so many columns are not wrapped without need.
const SENTENCE: usize = 48;
/// Narrower than this no terminal is taken to be.
const NARROWEST: usize = 20;

/// Programs whose commands stand among things to do.
const PROGRAMS: [&str; 16] = [
    "cat",
    "chmod",
    "chown",
    "echo",
    "hugewise",
    "kubectl",
    "mkdir",
    "mount",
    "numactl",
    "prlimit",
    "sudo",
    "swapoff",
    "sync",
    "sysctl",
    "systemctl",
    "virsh",
];

/// A cell's text and the style of its shade.
type Cell = (String, Style);

/// Broken at blanks, but not within `a command in backticks`.
pub fn wrapped(text: &str, width: u16) -> String {
    let lines = folded(text, usize::from(width).max(NARROWEST));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The lines of a text, one at least.
pub fn folded(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_owned()];
    }
    filled(words(text), width)
}

/// The lines of something to do. A command in it is not broken, so that it can be copied.
pub fn step(text: &str, width: usize) -> Vec<String> {
    let is_command = |place: usize| {
        let (before, rest) = text.split_at(place);
        let starts = before.is_empty() || before.ends_with(": ");
        starts && PROGRAMS.contains(&rest.split([' ', ';']).next().unwrap_or_default())
    };
    let starts = iter::once(0).chain(text.match_indices(' ').map(|(place, _)| place + 1));
    let command = starts.into_iter().find(|&place| is_command(place));
    let (prose, command) = text.split_at(command.unwrap_or(text.len()));
    let command = Some(command.to_owned()).filter(|command| !command.is_empty());
    filled(words(prose).into_iter().chain(command), width)
}

fn filled(words: impl IntoIterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = word,
            Some(line) if line.width() + 1 + word.width() <= width => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
}

fn words(text: &str) -> Vec<String> {
    let is_open = |word: &str| word.matches('`').count() % 2 == 1;
    let mut rest = text.split_whitespace();
    let mut words = Vec::new();
    while let Some(word) = rest.next() {
        let mut whole = word.to_owned();
        let behind = rest.clone().position(is_open).filter(|_| is_open(word));
        let within = rest.by_ref().take(behind.map_or(0, |place| place + 1));
        within.for_each(|more| whole += &format!(" {more}"));
        words.push(whole);
    }
    words
}

impl Sheet {
    /// Title, table and notes, as wide as the look allows.
    pub fn text(&self, look: Look) -> String {
        let notes = self.notes.iter().map(|note| wrapped(note, look.width));
        let table = (!self.rows.is_empty()).then(|| table(self, look));
        iter::once(wrapped(&self.title, look.width))
            .chain(table)
            .chain(notes)
            .collect()
    }
}

/// A table as wide as the look allows: its cells are wrapped, then columns are left out that are not needed; if that is not
/// enough, a heat map is split into several, and of other tables each row becomes a block.
fn table(sheet: &Sheet, look: Look) -> String {
    let all: Vec<usize> = (0..sheet.columns.len()).collect();
    let needed = || all.iter().copied().filter(|&place| !sheet.columns[place].is_spare);
    if let Some(text) = beside(sheet, &all, look) {
        text
    } else if let Some(text) = beside(sheet, &needed().collect::<Vec<_>>(), look) {
        let note = sheet.no_room().map(|note| wrapped(&note, look.width));
        text + &note.unwrap_or_default()
    } else if sheet.is_heat_map() {
        split(sheet, look)
    } else {
        blocks(sheet, look)
    }
}

/// The columns beside each other, if they fit.
fn beside(sheet: &Sheet, places: &[usize], look: Look) -> Option<String> {
    let widths = fit(sheet, places, usize::from(look.width))?;
    let heads = places.iter();
    let heads = heads.map(|&place| (sheet.columns[place].name.clone(), Style::new()));
    let heads = lines(sheet, places, &widths, heads, look).into_iter();
    let heads = heads.map(|line| look.painted(line, Style::new().bold()) + "\n");
    let rule = "─".repeat(total(&widths)) + "\n";
    let rows = sheet.rows.iter().enumerate().flat_map(|(row, cells)| {
        let cells = places.iter().map(|&place| {
            let style = sheet.shades.get(&(row, place)).map(|&heat| shade(heat));
            (cells.get(place).cloned().unwrap_or_default(), style.unwrap_or_default())
        });
        lines(sheet, places, &widths, cells, look)
    });
    Some(heads.chain([rule]).chain(rows.map(|line| line + "\n")).collect())
}

/// Black on the shade: readable whatever the terminal's own colours are.
fn shade(heat: Heat) -> Style {
    let [r, g, b] = heat.light();
    Style::new()
        .bg_color(Some(RgbColor(r, g, b).into()))
        .fg_color(Some(AnsiColor::Black.into()))
}

/// The widths of columns: as wide as their cells if there is room, else prose is wrapped; none if words do not fit.
fn fit(sheet: &Sheet, places: &[usize], room: usize) -> Option<Vec<usize>> {
    let ranges: Vec<[usize; 2]> = places.iter().map(|&place| range(sheet, place)).collect();
    let widths =
        |limit: usize| -> Vec<usize> { ranges.iter().map(|&[least, most]| limit.clamp(least, most)).collect() };
    // Where no terminal limits it, only sentences are wrapped, and a long path makes its line longer.
    let is_free = room >= usize::from(WIDE);
    let least = if is_free { SENTENCE } else { 0 };
    let fitting = (least..=room).rev().map(&widths).find(|widths| total(widths) <= room);
    fitting.or_else(|| is_free.then(|| widths(least)))
}

fn total(widths: &[usize]) -> usize {
    (widths.iter().sum::<usize>() + widths.len() * GAP).saturating_sub(1)
}

/// The least and the most width that a column has use for. Numbers are not wrapped.
fn range(sheet: &Sheet, place: usize) -> [usize; 2] {
    let Column { name, numeric, .. } = &sheet.columns[place];
    let cells = || sheet.rows.iter().filter_map(|row| row.get(place));
    let longest = |text: &String| words(text).iter().map(|word| word.width()).max().unwrap_or(0);
    let most = cells().map(|cell| cell.width()).max().unwrap_or(0);
    let word = cells().map(longest).max().unwrap_or(0);
    let least = if *numeric { most } else { word.max(most.min(PROSE)) };
    [least.max(longest(name)), most.max(name.width())]
}

/// The lines of one row, each cell at its side of its column.
fn lines(
    sheet: &Sheet,
    places: &[usize],
    widths: &[usize],
    cells: impl Iterator<Item = Cell>,
    look: Look,
) -> Vec<String> {
    let folded: Vec<(Vec<String>, Style)> = cells
        .zip(widths)
        .map(|((text, style), &width)| (folded(&text, width), style))
        .collect();
    let height = folded.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
    let line = |number: usize| {
        let cells = folded
            .iter()
            .zip(places.iter().zip(widths))
            .map(|((lines, style), (&place, &width))| {
                let text = lines.get(number).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(text.width()));
                let cell = match sheet.columns[place].numeric {
                    true => format!(" {blanks}{text} "),
                    false => format!(" {text}{blanks} "),
                };
                look.painted(cell, *style)
            });
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// The table as several, each with the first column and as many others as fit.
fn split(sheet: &Sheet, look: Look) -> String {
    let mut parts = Vec::new();
    let mut rest: Vec<usize> = (1..sheet.columns.len()).collect();
    while !rest.is_empty() {
        let part = |count: usize| iter::once(0).chain(rest[..count].iter().copied()).collect::<Vec<_>>();
        let fitting = (1..=rest.len())
            .rev()
            .find_map(|count| Some((count, beside(sheet, &part(count), look)?)));
        let Some((count, text)) = fitting else {
            return blocks(sheet, look);
        };
        parts.push(text);
        rest.drain(..count);
    }
    parts.join("\n")
}

/// Each row as lines of a column's name and its cell.
fn blocks(sheet: &Sheet, look: Look) -> String {
    let widths = sheet.columns.iter().map(|column| column.name.width());
    let label = widths.max().unwrap_or(0);
    let room = usize::from(look.width).saturating_sub(label + GAP + 1).max(NARROWEST);
    let block = |row: &Vec<String>| -> String {
        let cells = sheet.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let lines =
            cells.map(|(column, cell)| behind(&format!(" {}", column.name), label + GAP + 1, folded(cell, room)));
        lines.collect()
    };
    sheet.rows.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// Lines behind a word, which stands on the first of them; each text begins at the same column.
pub fn behind(word: &str, width: usize, lines: impl IntoIterator<Item = String>) -> String {
    let words = iter::once(word).chain(iter::repeat(""));
    let blanks = |word: &str| " ".repeat(width.saturating_sub(word.width()));
    let lines = words.zip(lines);
    lines
        .map(|(word, line)| format!("{word}{}{line}\n", blanks(word)))
        .collect()
}
