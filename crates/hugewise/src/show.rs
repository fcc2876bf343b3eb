//! Results that can be shown: each says what its tables and charts are, and every form follows from that.

mod error;
mod format;
mod shape;

use std::io::Write;

use model::Envelope;
use schemars::{Schema, schema_for};

use crate::cli::args::Global;
use draw::{Content, Figure, Layout, Lines, Look, Sheet, ToJson, joined, layout, picture, provenance, safe};
pub use error::ShowError;
pub use format::{CHARTS, FINDINGS, Format, PLANS, TABLES};
pub use shape::{Shape, Show};
pub(crate) use shape::{View, text, wrapped};

/// The longest lines above a picture.
const PICTURE: usize = 130;

/// The format of a result that is asked for, if it is one of those `known`.
///
/// # Errors
/// If it is not, with those that the result has.
pub fn form(args: &Global, usual: Format, known: &[Format]) -> Result<Format, ShowError> {
    let asked = if args.json { Some(Format::Json) } else { args.format };
    let of_file = || args.output.as_deref().and_then(Format::of_file);
    if let (None, Some(file)) = (asked, &args.output)
        && format::is_bitmap(file)
    {
        return Err(ShowError::Bitmap { file: file.clone() });
    }
    let format = asked.or_else(of_file).unwrap_or(usual);
    if known.contains(&format) {
        return Ok(format);
    }
    Err(ShowError::NoSuchForm {
        format: format.name(),
        known: known.iter().map(|format| format.name()).collect(),
    })
}

/// The name and version of a result's shape.
pub fn schema_name<T: Shape>() -> String {
    format!("hugewise/{}/{}", T::NAME, T::VERSION)
}

/// Does a result of this schema read as one of this kind?
pub fn reads<T: Shape>(schema: &str) -> bool {
    let version = schema.strip_prefix(&format!("hugewise/{}/", T::NAME));
    let version = version.and_then(|version| version.parse().ok());
    version.is_some_and(|version| (T::OLDEST..=T::VERSION).contains(&version))
}

/// The schema of a result with its envelope.
pub fn schema<T: Shape>() -> Schema {
    schema_for!(Envelope<T>)
}

/// A result in the given form. Here, where all forms are written, it loses what steers a terminal or runs in a browser or
/// spreadsheet, whatever the result holds.
pub fn show<T: Shape>(result: &Envelope<T>, format: Format, look: Look) -> Result<Vec<u8>, ShowError> {
    let mut bytes = Vec::new();
    write(result, format, look, &mut bytes)?;
    Ok(bytes)
}

/// Writes a result in the given form, as safe as [`show`] makes it; what may be very long is written as it is made.
pub fn write<T: Shape>(result: &Envelope<T>, format: Format, look: Look, out: &mut dyn Write) -> Result<(), ShowError> {
    write_view(&View::of(result), format, look, out)
}

fn write_view(view: &View<'_>, format: Format, look: Look, out: &mut dyn Write) -> Result<(), ShowError> {
    let View { about, data, .. } = view;
    let data = *data;
    let bytes = match format {
        Format::Json => return json(view.json, out),
        Format::Csv => return tables(data.tables(), out),
        Format::Text => return terminal_text(view, look, out),
        Format::Markdown => return markdown(view, out),
        Format::Svg => svg(&picture::svg(&head(view), &heat_maps(data), &charts(data)?)?),
        Format::Html => return page(view, out),
        Format::Sarif | Format::Prometheus | Format::Shell | Format::Ansible => {
            let text = data.own(about, format).ok_or_else(|| ShowError::NoSuchForm {
                format: format.name(),
                known: Vec::new(),
            })?;
            let is_plain = !text.contains(|c| safe::steers(c) && !matches!(c, '\n' | '\t'));
            is_plain.then(|| text.into_bytes()).ok_or(ShowError::Hostile)?
        }
    };
    Ok(out.write_all(&bytes)?)
}

/// Writes one chart of a result as a picture.
pub fn write_chart<T: Shape>(result: &Envelope<T>, name: &str, out: &mut dyn Write) -> Result<(), ShowError> {
    Ok(out.write_all(&drawn(&View::of(result), name)?)?)
}

fn drawn(view: &View<'_>, name: &str) -> Result<Vec<u8>, ShowError> {
    let figures = charts(view.data)?;
    let Some(figure) = figures.iter().find(|figure| figure.id == name) else {
        return Err(ShowError::NoSuchChart {
            name: name.to_owned(),
            known: figures.into_iter().map(|figure| figure.id).collect(),
        });
    };
    Ok(svg(&picture::svg(&head(view), &[], std::slice::from_ref(figure))?))
}

/// What stands above the charts of a picture, which travels alone: the title, the machine and the verdict.
fn head(view: &View<'_>) -> Vec<String> {
    let Envelope { machine, started, .. } = &view.about;
    let machine = format!("{}, kernel {}, {started}", machine.cpu, machine.kernel);
    let lines = [view.data.title(), machine].into_iter().chain(view.data.headlines());
    lines
        .flat_map(|line| layout::folded(&safe::printable(&line), PICTURE))
        .collect()
}

/// One of many results that follow each other: CSV lines that begin with the time (the heads only `is_first`), or a line of JSON.
pub fn sample<T: Shape>(result: &Envelope<T>, format: Format, is_first: bool) -> Result<Vec<u8>, ShowError> {
    let mut bytes = Vec::new();
    if format == Format::Json {
        result.write_json(Layout::Line, &mut safe::json_to(&mut bytes))?;
        bytes.push(b'\n');
        return Ok(bytes);
    }
    tables(result.data.tables(), &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let times = std::iter::once("time").chain(std::iter::repeat(result.started.as_str()));
    let lines = times.zip(text.lines()).skip(usize::from(!is_first));
    let lines: String = lines.map(|(time, line)| format!("{time},{line}\n")).collect();
    Ok(lines.into_bytes())
}

/// Colors only where every escape sequence is one of ours.
fn terminal_text(view: &View<'_>, look: Look, out: &mut dyn Write) -> Result<(), ShowError> {
    let data = view.data;
    let color = look.color && !safe::is_hostile(view.json)?;
    let look = Look { color, ..look };
    let shown = |text: String| if color { text } else { safe::printable_lines(&text) };
    out.write_all(shown(data.text(look)).as_bytes())?;
    if let Some(long) = data.long() {
        out.write_all(b"\n")?;
        long.write_text(look, out)?;
    }
    Ok(())
}

fn page(view: &View<'_>, out: &mut dyn Write) -> Result<(), ShowError> {
    let data = view.data;
    let content = Content {
        title: data.title(),
        headlines: data.headlines(),
        blocks: data.blocks(),
        folded: data.folded(),
        long: data.long(),
        about: &view.about,
        json: view.json,
    };
    Ok(content.page()?(out)?)
}

fn svg(drawn: &[u8]) -> Vec<u8> {
    safe::printable_lines(&String::from_utf8_lossy(drawn)).into_bytes()
}

fn heat_maps(data: &dyn Show) -> Vec<Sheet> {
    data.sheets().into_iter().filter(Sheet::is_heat_map).collect()
}

/// Charts, if there is anything to draw at all.
fn charts(data: &dyn Show) -> Result<Vec<Figure>, ShowError> {
    let figures = data.figures();
    match figures.is_empty() && heat_maps(data).is_empty() {
        true => Err(ShowError::NoChart),
        false => Ok(figures),
    }
}

fn markdown(view: &View<'_>, out: &mut dyn Write) -> Result<(), ShowError> {
    let View { about, data, .. } = view;
    let head = std::iter::once(format!("# {}\n", safe::markdown(&data.title())));
    let headlines = data.headlines().into_iter();
    let headlines = headlines.map(|line| format!("{}\n", safe::markdown_paragraph(&line)));
    let tables = provenance::warnings(about).into_iter().chain(data.sheets());
    let tables = tables.map(|sheet| sheet.markdown());
    let parts: Vec<String> = head.chain(headlines).chain(tables).collect();
    out.write_all(parts.join("\n").as_bytes())?;
    if let Some(long) = data.long() {
        out.write_all(b"\n")?;
        long.write_markdown(out)?;
    }
    Ok(write!(out, "\n{}", provenance::provenance(about).markdown())?)
}

fn json(result: &dyn ToJson, out: &mut dyn Write) -> Result<(), ShowError> {
    result.write_json(Layout::Indented, &mut safe::json_to(out))?;
    Ok(out.write_all(b"\n")?)
}

/// Several tables have their names above them, and a blank line between them.
fn tables(tables: Vec<(&'static str, Lines<'_>)>, out: &mut dyn Write) -> Result<(), ShowError> {
    let has_names = tables.len() > 1;
    for (number, (name, lines)) in tables.into_iter().enumerate() {
        if has_names {
            let gap = if number == 0 { "" } else { "\n" };
            writeln!(out, "{gap}# {name}")?;
        }
        csv(lines, out)?;
    }
    Ok(())
}

fn csv((head, rows): Lines<'_>, out: &mut dyn Write) -> Result<(), ShowError> {
    writeln!(out, "{}", csv_line(&head))?;
    for row in rows {
        writeln!(out, "{}", csv_line(&row))?;
    }
    Ok(())
}

fn csv_line<T: AsRef<str>>(cells: &[T]) -> String {
    joined(cells.iter().map(|cell| safe::csv_cell(cell.as_ref())), ",")
}

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod safe_tests;
#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
