//! The claims of the five publications: what each says, its counterparts here, and what follows.

use studies::claims::{Claim, Claims, Counterpart, How, Measure, Verdict};

use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, lines, pairs};

impl Show for Claims {
    fn title(&self) -> String {
        format!(
            "Claims of the publications, and their counterparts here: {}",
            counted(self.claims.len(), "claim")
        )
    }

    fn headlines(&self) -> Vec<String> {
        How::ALL.into_iter().map(|how| headline(self, how)).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let by_source = self.claims.chunk_by(|one, next| one.source == next.source);
        by_source.map(sheet).chain([places(self)]).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(claim, here)| (&Claim, &Counterpart);
            id => claim.id, source => claim.source, place => claim.place, machine => claim.machine, what => claim.what,
            quantity => claim.measure.quantity, of => claim.measure.of, unit => claim.measure.unit, figure => claim.figure,
            how => here.how.name(), by => here.by, low => here.value?[0], high => here.value?[1],
            verdict => here.verdict.name(), why => here.why,
        ];
        lines(fields, pairs(&self.claims, |claim| &claim.here))
    }
}

fn headline(claims: &Claims, how: How) -> String {
    let all = || pairs(&claims.claims, |claim| &claim.here).filter(|(_, here)| here.how == how);
    let count = |verdict: Verdict| all().filter(|(_, here)| here.verdict == verdict).count();
    let [agree, differ, others] = Verdict::ALL.map(count);
    let title = match how {
        How::Measured => "Measured",
        How::Simulated => "Simulated",
        How::Arithmetic => "Arithmetic",
        How::Fitted => return format!("Fitted, so that nothing can be compared: {others}."),
        How::Input => return format!("Put in, so that nothing can be compared: {others}."),
        How::None => return format!("Without a counterpart: {others}."),
    };
    format!("{title}: {agree} agree, {differ} differ, {others} cannot be compared.")
}

/// Claims of one publication.
fn sheet(claims: &[Claim]) -> Sheet {
    let fields = columns![|(claim, here)| (&Claim, &Counterpart);
        "claim" => first(claim, here)?.what, "published" => published(first(claim, here)?), "here" => value(claim, here),
        "how" => how(here), "verdict" => here.verdict.name(), "reason" => here.why,
    ];
    Sheet::of(&claims[0].source, fields, pairs(claims, |claim| &claim.here))
}

/// The claim beside its first counterpart; beside the others it is not repeated.
fn first<'a>(claim: &'a Claim, here: &Counterpart) -> Option<&'a Claim> {
    let is_first = claim.here.first().is_some_and(|first| std::ptr::eq(first, here));
    is_first.then_some(claim)
}

fn how(here: &Counterpart) -> String {
    match here.by.as_str() {
        "" => here.how.name().to_owned(),
        by => format!("{}: {by}", here.how.name()),
    }
}

/// A number stands with its unit, a trend with what is counted: more `% less` response time is less of it.
fn published(claim: &Claim) -> String {
    let Measure { quantity, unit, .. } = &claim.measure;
    if !claim.numbers().is_empty() {
        return format!("{} {unit}", claim.figure);
    }
    let figure = match (claim.figure.as_str(), unit.ends_with(" less")) {
        ("more", true) => "less",
        ("less", true) => "more",
        (figure, _) => figure,
    };
    format!("{figure} {quantity}").replace("no figure ", "no figure of ")
}

/// The value with its unit; where it is of something else, with what it is of.
fn value(claim: &Claim, here: &Counterpart) -> String {
    let Some([low, high]) = here.value else {
        return "-".to_owned();
    };
    let Measure { quantity, of, unit } = &here.measure;
    let range = if low == high {
        low.to_string()
    } else {
        format!("{low} to {high}")
    };
    match here.measure == claim.measure {
        true => format!("{range} {unit}"),
        false => format!("{range} {unit} ({quantity}, {of})"),
    }
}

/// Where each claim stands, and of which machine it is.
fn places(claims: &Claims) -> Sheet {
    let fields = columns![|claim| &Claim;
        "id" => claim.id, "claim" => claim.what, "place" => claim.place, "quantity" => claim.measure.quantity,
        "of" => claim.measure.of, "machine" => claim.machine,
    ];
    let mut sheet = Sheet::of("Where it is published", fields, claims.claims.iter());
    sheet.note("figures: a number holds to its last digit, about = within a tenth, the same = within 1, a trend must hold for all of the range");
    sheet.note("a range that is wider than the figure is large decides nothing");
    sheet
}
