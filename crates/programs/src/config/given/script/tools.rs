//! Tools that fill pools, as the writes of the kernel's files that they make.

use host::snapshot::hugetlb::path_in_pool;
use host::snapshot::thp::THP;
use model::Bytes;

use super::Reader;
use super::commands::assignment;
use super::words::Word;
use super::written::Unresolved;
use crate::config::Setting;
use crate::config::given::shell_tokens::Part;

const COUNT: &str = "nr_hugepages";

impl Reader<'_> {
    /// libhugetlbfs' `hugeadm --pool-pages-min SIZE:PAGES --thp-madvise`. What it adds to a pool (`SIZE:+PAGES`), and where it lets one grow to, a run alone shows.
    pub(super) fn hugeadm(&mut self, line: usize, arguments: &[Word], is_sure: bool) {
        let is_by_node = arguments.iter().any(|word| word.text == "--obey-mempolicy");
        for (option, value) in options(arguments) {
            let what = || format!("hugeadm {option} {}", value.as_ref().map_or("", |value| &value.text));
            match (option, option.strip_prefix("--thp-")) {
                ("--pool-pages-min", _) => {
                    let known = value.as_ref().filter(|value| !value.is_open() && !is_by_node);
                    let Some((file, pages)) = known.and_then(|value| of_pool(&value.text)) else {
                        self.unresolved(line, &what(), Some(&Word::plain(COUNT)));
                        continue;
                    };
                    let setting = Setting::new(self.place(line), file, pages.to_string());
                    self.keep(setting, is_sure, true);
                }
                ("--pool-pages-max", _) => {
                    let file = Word::plain("nr_overcommit_hugepages");
                    self.unresolved(line, &what(), Some(&file));
                }
                (_, Some(policy @ ("always" | "madvise" | "never"))) => {
                    let setting = Setting::new(self.place(line), format!("{THP}/enabled"), policy);
                    self.keep(setting, is_sure, true);
                }
                _ => {}
            }
        }
    }

    /// DPDK's `dpdk-hugepages.py -p 1G -n 0 -r 4G`: without a node it writes the number for all of the memory to each.
    pub(super) fn dpdk_hugepages(&mut self, line: usize, words: &[Word], is_sure: bool) {
        let of = |names: [&str; 2]| {
            let own = options(words).filter(|(name, _)| names.contains(name));
            own.filter_map(|(_, value)| value).last()
        };
        let setup = of(["--setup"; 2]);
        let clears = match setup {
            Some(_) => ", after it has emptied the pools of all sizes",
            None => "",
        };
        let Some(memory) = setup.or_else(|| of(["-r", "--reserve"])) else {
            return;
        };
        let known = || {
            let value = |names| of(names).filter(|word| !word.is_open());
            let page = value(["-p", "--pagesize"])?.text.parse::<Bytes>().ok()?;
            let node = value(["-n", "--node"])?.text.parse::<u32>().ok()?;
            let memory = memory.text.parse::<Bytes>().ok().filter(|_| !memory.is_open())?;
            // Another size is refused.
            let pages = (memory.0.checked_rem(page.0)? == 0).then(|| (memory.0 / page.0).to_string())?;
            Some(Setting::new(
                self.place(line),
                path_in_pool(page, Some(node), COUNT),
                pages,
            ))
        };
        if let Some(setting) = known() {
            self.keep(setting, is_sure, true);
            return;
        }
        let how = format!("it reserves that much on each NUMA node where none is named{clears}");
        self.not_worked_out(line, words, &how);
    }

    /// SPDK's `HUGEMEM=8192 scripts/setup.sh`. Is it that script?
    pub(super) fn spdk(&mut self, line: usize, words: &[Word], at: usize, assigned: &[Vec<Part>]) -> bool {
        let named = |name: &str| {
            let here = assigned
                .iter()
                .filter_map(|word| assignment(word))
                .find(|(own, ..)| own == name);
            let here = here.map(|(_, _, value)| self.variables.whole(&value).text);
            let before = || {
                words[..at]
                    .iter()
                    .find_map(|word| word.text.strip_prefix(name)?.strip_prefix('='))
            };
            here.or_else(|| before().map(str::to_owned))
        };
        let value = |name: &str| named(name).or_else(|| self.variables.get(name).map(|word| word.text.clone()));
        let is_spdk = words[at].text.contains("spdk") || named("HUGEMEM").or_else(|| named("NRHUGE")).is_some();
        if !is_spdk {
            return false;
        }
        let fills = words.get(at + 1).is_none_or(|word| word.text == "config");
        if fills && value("SKIP_HUGE").is_none_or(|skip| skip != "yes") {
            let pages = value("NRHUGE").map(|pages| format!("{pages} pages"));
            let size =
                pages.unwrap_or_else(|| format!("{} MiB", value("HUGEMEM").unwrap_or_else(|| "2048".to_owned())));
            let nodes = value("HUGENODE").map_or_else(String::new, |nodes| format!(" on each of the nodes {nodes}"));
            let how = format!("it raises a pool that is smaller to {size}{nodes}, and leaves a larger one");
            self.not_worked_out(line, &words[at..], &how);
        }
        true
    }

    /// A command that sets the pages of a pool, and how.
    fn not_worked_out(&mut self, line: usize, words: &[Word], how: &str) {
        let why = format!("`{}` is not judged: {how}", Word::join(words, " ").text);
        let unresolved = Unresolved::new(self.place(line), why, Some(COUNT.to_owned()));
        self.script.unresolved.push(unresolved);
    }
}

/// Each option with its value, in the same word or the next.
fn options(words: &[Word]) -> impl Iterator<Item = (&str, Option<Word>)> {
    let are_options = words.iter().enumerate().filter(|(_, word)| word.text.starts_with('-'));
    are_options.map(move |(at, word)| {
        let short = word
            .text
            .split_at_checked(2)
            .filter(|(name, rest)| *name != "--" && !rest.is_empty());
        match word.text.split_once('=').or(short) {
            Some((name, value)) => (
                name,
                Some(Word {
                    text: value.to_owned(),
                    open: word.open.clone(),
                }),
            ),
            None => (
                word.text.as_str(),
                words.get(at + 1).filter(|next| !next.text.starts_with('-')).cloned(),
            ),
        }
    })
}

/// `SIZE:PAGES` or `SIZE:MEMORY` of hugeadm, as the setting and its number.
fn of_pool(value: &str) -> Option<(String, u64)> {
    let (size, count) = value
        .split_once(':')
        .filter(|(_, count)| count.starts_with(|c: char| c.is_ascii_digit()))?;
    if size == "DEFAULT" {
        return Some(("vm.nr_hugepages".to_owned(), count.parse().ok()?));
    }
    let page: Bytes = size.parse().ok()?;
    let pages = match count.parse::<u64>() {
        Ok(pages) => pages,
        Err(_) => count.parse::<Bytes>().ok()?.0.checked_div(page.0)?,
    };
    Some((path_in_pool(page, None, COUNT), pages))
}

#[cfg(test)]
mod tests {
    use super::super::read;

    /// What a script writes, and what is not judged of it.
    fn report(text: &str) -> String {
        let script = read("a.sh", text);
        let settings = script.sysctl.iter().chain(&script.sysfs);
        let writes = settings.map(|set| {
            format!(
                "{} {}",
                set.name.rsplit("/hugepages/").next().unwrap_or_default(),
                set.value
            )
        });
        let open = script.unresolved.iter().map(|open| format!("? {open}"));
        writes.chain(open).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tools_write_the_files_of_the_kernel() {
        for (text, expected) in [
            ("hugeadm --pool-pages-min 2MB:512", "hugepages-2048kB/nr_hugepages 512"),
            (
                "sudo hugeadm --pool-pages-min=1G:8G --verbose 2",
                "hugepages-1048576kB/nr_hugepages 8",
            ),
            ("hugeadm --pool-pages-min DEFAULT:64", "vm.nr_hugepages 64"),
            (
                "hugeadm --thp-never",
                "/sys/kernel/mm/transparent_hugepage/enabled never",
            ),
            ("hugeadm --list-all-mounts", ""),
            (
                "dpdk-hugepages.py -p 1G -n 1 -r 4G",
                "hugepages-1048576kB/nr_hugepages 4",
            ),
            ("dpdk-hugepages.py --show", ""),
            ("/opt/spdk/scripts/setup.sh reset", ""),
            ("SKIP_HUGE=yes /opt/spdk/scripts/setup.sh", ""),
            ("./setup.sh", ""),
        ] {
            assert_eq!(report(text), expected, "{text}");
        }
        for (text, part) in [
            ("hugeadm --pool-pages-min 2M:+64", "hugeadm --pool-pages-min 2M:+64"),
            ("hugeadm --pool-pages-min 2M:$N", "hugeadm --pool-pages-min"),
            ("numactl -m 1 hugeadm --pool-pages-min 2M:8 --obey-mempolicy", "2M:8"),
            ("dpdk-hugepages.py -p 1G -n 0 -r 1536M", "-r 1536M"),
            ("hugeadm --pool-pages-max 2M:64", "hugeadm --pool-pages-max 2M:64"),
            (
                "dpdk-hugepages.py --setup 4G",
                "on each NUMA node where none is named, after it has emptied the pools of all sizes",
            ),
            ("sudo HUGEMEM=8192 ./scripts/setup.sh", "smaller to 8192 MiB"),
            (
                "export NRHUGE=4096\n/opt/spdk/scripts/setup.sh config",
                "smaller to 4096 pages",
            ),
            (
                "cd /opt/spdk && scripts/setup.sh && NRHUGE=8 scripts/setup.sh",
                "smaller to 8 pages",
            ),
        ] {
            let report = report(text);
            assert!(
                report.starts_with("? a.sh:") && report.contains(part) && report.contains("is not judged"),
                "{text}: {report}"
            );
        }
    }
}
