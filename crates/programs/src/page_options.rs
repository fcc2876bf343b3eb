//! Options by which programs ask for huge pages of a size of their own.

/// Miners of RandomX.
const XMRIG: &[&str] = &["xmrig", "xmrig-notls"];
pub const HUGEPAGE_SIZE: &str = "--hugepage-size";
pub const RANDOMX_1G: &str = "--randomx-1gb-pages";

/// Programs, an option of theirs, and those with which it has no effect.
const OPTIONS: [(&[&str], &str, &[&str]); 2] = [
    (XMRIG, HUGEPAGE_SIZE, &["--no-huge-pages"]),
    (XMRIG, RANDOMX_1G, &["--no-huge-pages", "--randomx-mode=light"]),
];

/// Is it a program that has such an option?
pub(crate) fn is_known(program: &str) -> bool {
    OPTIONS.iter().any(|(programs, ..)| programs.contains(&program))
}

/// Such options in a command, each with its value, which is empty where it has none.
pub fn page_options(words: &[String]) -> Vec<(&'static str, String)> {
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(at) = words.iter().position(|word| is_known(&name(word))) else {
        return Vec::new();
    };
    let (program, own) = (name(&words[at]), &words[at + 1..]);
    let rows = OPTIONS.iter().filter(|(programs, _, without)| {
        programs.contains(&program.as_str()) && !own.iter().any(|word| without.contains(&word.as_str()))
    });
    let asked = rows.filter_map(|(_, option, _)| {
        let is_set = own.iter().any(|word| word.split('=').next() == Some(*option));
        let value = value_of(own, option).filter(|value| !value.starts_with('-'));
        is_set.then(|| (*option, value.unwrap_or_default().to_owned()))
    });
    asked.collect()
}

/// The value of an option, behind it or in the same word.
pub(crate) fn value_of<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let mut words = words.iter().map(String::as_str);
    let rest = words.find_map(|word| {
        let rest = word.strip_prefix(option)?;
        (rest.is_empty() || rest.starts_with('=')).then_some(rest)
    })?;
    rest.strip_prefix('=').or_else(|| words.next())
}

#[cfg(test)]
mod tests {
    use super::{HUGEPAGE_SIZE, RANDOMX_1G, page_options};

    #[test]
    fn options_of_miners_are_found_with_their_values() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            page_options(&words)
        };
        let is = |value: &str| (HUGEPAGE_SIZE, value.to_owned());
        assert_eq!(of("sudo ./xmrig -k --hugepage-size=1280"), [is("1280")]);
        assert_eq!(of("xmrig --hugepage-size 1048576 -k"), [is("1048576")]);
        assert_eq!(of("xmrig --randomx-1gb-pages -k"), [(RANDOMX_1G, String::new())]);
        for without in [
            "xmrig --randomx-1gb-pages --randomx-mode=light",
            "xmrig --hugepage-size=1280 --no-huge-pages",
            "fio --hugepage-size=4m job.fio",
            "xmrig --hugepage-sizes=1",
        ] {
            assert!(of(without).is_empty(), "{without}");
        }
    }
}
