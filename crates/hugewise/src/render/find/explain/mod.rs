//! Whether a program uses huge pages: the answer, its numbers, the reasons and the next commands.

mod facts;
mod mapped;
mod next;
mod parts;

use doctor::explain::{Asked, Part, Usage};
use model::Reading;
use programs::LogLine;

use self::facts::{answer, facts, name};
use self::next::next;
use self::parts::title;
use crate::results::Explain;
use crate::show::{Show, wrapped};
use draw::{Field, Lines, Look, Sheet, columns, joined, layout::behind, lines, pairs, printable};

impl Show for Explain {
    fn title(&self) -> String {
        format!("Huge pages of {}", self.target)
    }

    fn headlines(&self) -> Vec<String> {
        self.programs.iter().map(answer).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let programs = self.programs.iter();
        programs.flat_map(|usage| sheets(usage, &self.target)).collect()
    }

    fn text(&self, look: Look) -> String {
        joined(self.programs.iter().map(|usage| text(usage, &self.target, look)), "\n")
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), pairs(&self.programs, |usage| &usage.parts))
    }
}

fn fields<'a>() -> [Field<'a, (&'a Usage, &'a Part)>; 12] {
    columns![|(usage, part)| (&Usage, &Part);
        pid => usage.pid, name => usage.name, in_use => usage.in_use, part => title(part.what), size => part.size.0,
        touched => part.touched.known()?.0, page => part.hugetlb?.page.0, pages => part.hugetlb?.total,
        touched_pages => part.hugetlb?.touched?, reserved_pages => part.hugetlb?.reserved()?,
        needs_pages => part.needs?.pages, backing => part.backing.known()?,
    ]
}

/// Columns of a label and the blanks behind it.
const LABEL: usize = 16;

/// The answer and its numbers first, then settings and findings, then the commands.
fn text(usage: &Usage, target: &str, look: Look) -> String {
    let mut text = format!("{}\n", printable(&name(usage)));
    for (label, line) in facts(usage) {
        let lines = wrapped(&printable(&line), look.width.saturating_sub(LABEL as u16 + 2));
        let lines = lines.lines().map(str::to_owned);
        text += &behind(&format!("  {label}"), LABEL + 2, lines);
    }
    let tables = tables(usage).into_iter().map(|sheet| format!("\n{}", sheet.text(look)));
    text.extend(tables);
    let steps = next(usage, target);
    if steps.is_empty() {
        return text;
    }
    text += "\nNext\n";
    let steps = steps.into_iter();
    text.extend(steps.map(|step| format!("  {}\n", printable(&step))));
    text
}

fn sheets(usage: &Usage, target: &str) -> Vec<Sheet> {
    let fields = columns![|(label, text)| (String, String); "what" => label, "state" => text];
    let account = Sheet::of(&name(usage), fields, facts(usage).into_iter());
    let fields = columns![|step| String; "command or step" => step];
    let commands = Sheet::of("Next", fields, next(usage, target).into_iter());
    let tables = std::iter::once(account).chain(tables(usage));
    tables.chain(commands.with_rows()).collect()
}

/// What the answer rests on.
fn tables(usage: &Usage) -> Vec<Sheet> {
    let mut settings = Sheet::new("Settings that decide", ["setting", "value", "read from"]);
    for Asked { setting, value, place } in &usage.asked {
        let value = match value {
            Reading::Known(value) => value.clone().unwrap_or_else(|| "not set".to_owned()),
            Reading::Unread(why) => format!("could not be read: {why}"),
        };
        settings.row([setting, &value, place]);
    }
    let mut findings = Sheet::new("Findings", ["severity", "rule", "finding"]);
    for finding in &usage.findings {
        findings.row([&finding.severity.to_string(), &finding.id, &finding.consequence]);
    }
    let mut log = Sheet::new("Its own log", ["line", "text", "means"]);
    for LogLine { place, text, means } in &usage.log {
        log.row([place, text, means.as_deref().unwrap_or_default()]);
    }
    for cut in &usage.log_cut {
        let (file, read, size) = (&cut.file, &cut.read, &cut.size);
        log.note(format!("{file}: only the last {read} of {size} were read"));
    }
    let mapped = usage.mapped.as_ref().map(mapped::sheet);
    std::iter::once(settings)
        .chain(mapped)
        .chain([log, findings])
        .filter(|sheet| !sheet.is_empty())
        .collect()
}
