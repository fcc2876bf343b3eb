//! Which code of executables can be on huge pages: how many segments and why not, then each of them.

use std::collections::BTreeMap;

use host::snapshot::Feature;
use model::Bytes;
use programs::image::{Fit, ImageKind, Images, Segment};

use crate::show::Show;
use draw::{Field, Lines, Sheet, columns, counted, lines};

/// A terminal shows so many segments; other forms all.
const BRIEF: usize = 20;

impl Show for Images {
    fn title(&self) -> String {
        format!("Code in {} and huge pages of {}", self.path, self.page.exact())
    }

    fn headlines(&self) -> Vec<String> {
        let answers = [Fit::Yes, Fit::IfMappedSo, Fit::Alignment, Fit::Size];
        let answers: Vec<String> = answers.into_iter().filter_map(|fit| answer(self, fit)).collect();
        match answers.is_empty() {
            true => vec![format!("{} has no program or library with code.", self.path)],
            false => answers,
        }
    }

    fn sheets(&self) -> Vec<Sheet> {
        vec![table(self, self.segments.len())]
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        vec![table(self, BRIEF)]
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), self.segments.iter())
    }
}

/// `11 of 40 segments can never be on huge pages of 2M: linked with an alignment of 4K. ...`
fn answer(images: &Images, fit: Fit) -> Option<String> {
    let number = images.that(fit).count();
    let segments = counted(images.segments.len(), "executable segment");
    let (all, page) = (format!("{number} of {segments}"), images.page.exact());
    let linked = || linked(images.that(fit));
    let option = format!("-Wl,-z,max-page-size={}", images.page.0);
    let text = match fit {
        Fit::Yes => format!("{all} can be on huge pages of {page} wherever the file is loaded."),
        Fit::IfMappedSo => {
            let [major, minor, _] = Feature::FilesAligned.since();
            format!(
                "{all} can be on huge pages of {page} where the kernel maps the library at a multiple of that size (ext4 and xfs since Linux {major}.{minor}): \
                 {}. Linked with {option}, they ask for that themselves.",
                linked()
            )
        }
        Fit::Alignment => format!(
            "{all} can never be on huge pages of {page}: {}. Link them with {option} -Wl,-z,separate-code.",
            linked()
        ),
        Fit::Size => format!("{all} can never be on huge pages of {page}: smaller than one."),
    };
    (number > 0).then_some(text)
}

/// `linked with an alignment of 4K`, the commonest alone.
fn linked<'a>(segments: impl Iterator<Item = &'a Segment>) -> String {
    let mut counts: BTreeMap<Bytes, usize> = BTreeMap::new();
    segments.for_each(|segment| *counts.entry(segment.align).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(align, _)| *align);
    let mostly = if counts.len() > 1 { "mostly " } else { "" };
    format!(
        "linked with an alignment of {mostly}{}",
        most.unwrap_or_default().exact()
    )
}

fn table(images: &Images, most: usize) -> Sheet {
    let mut sheet = Sheet::of("Executable segments", fields(), images.segments.iter().take(most));
    if let Some(more) = images.segments.len().checked_sub(most).filter(|more| *more > 0) {
        sheet.note(format!("and {more} smaller ones, which --format csv lists"));
    }
    sheet.note(format!(
        "{} and {} were read; how much is on huge pages once it runs depends on the file system, too: hugewise explain PID",
        counted(images.files as usize, "ELF file"),
        counted(images.others as usize, "other file"),
    ));
    if let Some(first) = images.unread.first() {
        let names = counted(images.unread_count as usize, "name");
        sheet.note(format!("{names} could not be read, the first: {first}"));
    }
    sheet
}

fn fields<'a>() -> [Field<'a, &'a Segment>; 12] {
    columns![|segment| &Segment;
        "file" file => segment.file, "what" => kind(segment.kind), kind => segment.kind,
        "~#offset" offset => segment.offset, "~#address" address => segment.address,
        "#alignment" => segment.align.exact(), "#size" => segment.size, size => segment.size.0, align => segment.align.0,
        "#whole pages" pages => segment.pages, "huge?" => answered(segment.fit), fit => segment.fit,
    ]
}

fn kind(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::Fixed => "program, fixed",
        ImageKind::Pie => "program, PIE",
        ImageKind::Library => "library",
    }
}

fn answered(fit: Fit) -> &'static str {
    match fit {
        Fit::Yes => "yes",
        Fit::IfMappedSo => "if mapped so",
        Fit::Alignment => "no: alignment",
        Fit::Size => "no: small",
    }
}

#[cfg(test)]
mod tests {
    use model::{Address, Bytes};
    use programs::image::{Fit, ImageKind, Images, Segment};

    use crate::show::Show;

    #[test]
    fn the_summary_says_how_many_never_and_with_which_option() {
        let segment = |fit| Segment {
            file: "/usr/bin/db".to_owned(),
            kind: ImageKind::Pie,
            offset: Address(0x1000),
            address: Address(0x1000),
            size: Bytes::mib(5),
            align: Bytes::kib(4),
            pages: 2,
            fit,
        };
        let images = Images {
            path: "/usr/bin".to_owned(),
            page: Bytes::mib(2),
            files: 3,
            others: 1,
            segments: [Fit::Alignment, Fit::Alignment, Fit::Size].map(segment).to_vec(),
            unread: Vec::new(),
            unread_count: 0,
        };
        let lines = images.headlines();
        assert_eq!(
            lines[0],
            "2 of 3 executable segments can never be on huge pages of 2M: linked with an alignment of 4K. Link them with \
             -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code."
        );
        assert_eq!(
            lines[1..],
            ["1 of 3 executable segments can never be on huge pages of 2M: smaller than one."]
        );
        assert_eq!(images.brief_sheets()[0].rows.len(), 3);
    }
}
