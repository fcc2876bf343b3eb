//! A result as one HTML page: opens offline, prints, and reads on a phone.

mod chart;

use askama::Template;
use model::Envelope;

use self::chart::Drawing;
use super::heat::Heat;
use super::long::Long;
use super::provenance;
use super::safe;
use super::sheet::Sheet;
use super::tone::{TONES, Tone};
use crate::show::{Show, ShowError};

/// The page of a result; everything in it that comes from the machine is escaped by the template.
pub fn page<T: Show>(result: &Envelope<T>) -> Result<String, ShowError> {
    let drawings: Result<Vec<Drawing>, _> = result.data.figures().iter().map(chart::draw).collect();
    let mut sheets = result.data.sheets();
    sheets.extend(result.data.long().map(Long::sheet));
    let page = Page {
        title: &result.data.title(),
        headlines: &result.data.headlines(),
        lead: &result.data.lead(),
        drawings: &drawings?,
        sheets: &sheets,
        doubts: &provenance::doubts(result),
        provenance: &provenance::provenance(result),
        machine: &format!("{}, kernel {}", result.machine.cpu, result.machine.kernel),
        program: &format!("{} {}", result.tool.name, result.tool.version),
        started: &result.started,
        palette: &palette(),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        json: &embedded(&safe::json(&serde_json::to_string(result)?)),
    };
    Ok(safe::printable_lines(&page.render()?) + "\n")
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    headlines: &'a [String],
    lead: &'a Option<Sheet>,
    drawings: &'a [Drawing],
    sheets: &'a [Sheet],
    doubts: &'a Option<Sheet>,
    provenance: &'a Sheet,
    machine: &'a str,
    program: &'a str,
    started: &'a str,
    palette: &'a str,
    style: &'a str,
    script: &'a str,
    json: &'a str,
}

/// JSON that cannot end the script element it stands in.
fn embedded(json: &str) -> String {
    json.replace('<', "\\u003c")
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
