//! A calculation as a table: its arithmetic line by line, then what goes wrong with it in practice.

use studies::size::{Sizing, Step};

use crate::show::Show;
use draw::{Field, Lines, Sheet, columns, lines};

impl Show for Sizing {
    fn title(&self) -> String {
        self.about.clone()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::of(&self.about, fields(), self.steps.iter());
        for trap in &self.traps {
            sheet.note(format!("mind: {trap}"));
        }
        sheet.note(format!("source: {}", self.source));
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), self.steps.iter())
    }
}

fn fields<'a>() -> [Field<'a, &'a Step>; 4] {
    columns![|step| &Step;
        "what" name => step.name, "how" how => step.how, "#value" value => step.value, "unit" unit => step.unit,
    ]
}
