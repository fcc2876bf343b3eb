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
    rows.filter_map(|(_, option, _)| Some((*option, value_of(own, option)?)))
        .collect()
}

fn value_of(words: &[String], option: &str) -> Option<String> {
    let (at, rest) = words
        .iter()
        .enumerate()
        .find_map(|(at, word)| Some((at, word.strip_prefix(option)?)))?;
    if let Some(value) = rest.strip_prefix('=') {
        return Some(value.to_owned());
    }
    let next = || words.get(at + 1).filter(|next| !next.starts_with('-'));
    rest.is_empty().then(|| next().cloned().unwrap_or_default())
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
