//! The pages of a program without its configuration, as a goal: how many, or how to calculate them.

use std::fmt;

use host::{Snapshot, Source};
use model::Bytes;
use model::vms::Vm;
use programs::config::mysql::Options;
use programs::size::mysql::{self, Innodb};
use programs::{Kind, Target};

const PAGE: Bytes = Bytes::mib(2);

/// As an argument: `--for pool:2M=132, for a buffer pool of 256M`.
pub(super) struct Alone {
    pages: Option<u64>,
    /// What they are for; where their number is not known, where it stands.
    about: String,
}

impl Alone {
    /// Of a server that has a configuration file of its own.
    pub(super) fn of_server(source: &Source, target: &Target, file: Option<&str>) -> Self {
        if target.main.kind.known() == Some(&Some(Kind::Mysql)) {
            return innodb(source, target, file);
        }
        match target.shared.first() {
            Some(segment) => {
                let memory = format!("{} of shared memory", segment.area.size());
                Self::beside_those_in_use(source, segment.pages(PAGE), &memory)
            }
            None => Self::not_known("what `SHOW shared_memory_size_in_huge_pages` returns in the container"),
        }
    }

    pub(super) fn of_vm(source: &Source, vm: &Vm) -> Self {
        let configured = vm.configured.known().map(|configured| configured.total());
        match configured.filter(|memory| memory.0 > 0).unwrap_or(vm.mapped) {
            Bytes(0) => Self::not_known("the guest's memory / 2M"),
            memory => {
                let pages = memory.0.div_ceil(PAGE.0);
                Self::beside_those_in_use(source, pages, &format!("{memory} of guest memory"))
            }
        }
    }

    /// A goal names all pages of a pool: it takes none from other programs, and does not make the pool smaller.
    fn beside_those_in_use(source: &Source, pages: u64, what: &str) -> Self {
        let pools = Snapshot::take(source).pools;
        let pool = pools
            .known()
            .and_then(|pools| pools.iter().find(|pool| pool.size == PAGE));
        let counts = pool.and_then(|pool| Some((pool.taken()?, *pool.nr.known()?)));
        let Some((in_use, all)) = counts else {
            return Self::not_known(&format!("{pages} for {what} + the pages that are in use"));
        };
        let beside = match in_use {
            0 => String::new(),
            in_use => format!(" beside {in_use} pages in use"),
        };
        Self {
            pages: Some(all.max(in_use.saturating_add(pages))),
            about: format!("for {what}{beside}"),
        }
    }

    fn not_known(about: &str) -> Self {
        let about = about.to_owned();
        Self { pages: None, about }
    }

    /// As `--for` takes it, where the number is known.
    pub(super) fn goal(&self) -> Option<String> {
        self.pages.map(|pages| format!("pool:{PAGE}={pages}"))
    }
}

impl fmt::Display for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = &self.about;
        match self.goal() {
            Some(goal) => write!(f, "--for {goal}, {about}"),
            None => write!(f, "--for pool:{PAGE}=PAGES, where PAGES is {about}"),
        }
    }
}

fn innodb(source: &Source, target: &Target, file: Option<&str>) -> Alone {
    let is_mariadb = target.main.is_mariadb();
    let sizing = settings(source, target, file).and_then(|settings| {
        let settings = Innodb { is_mariadb, ..settings };
        let sizing = mysql::innodb(&settings, PAGE).ok()?;
        Some((settings.pool, sizing.whole("pages")?))
    });
    match sizing {
        Some((pool, pages)) => Alone::beside_those_in_use(source, pages, &format!("a buffer pool of {pool}")),
        None => {
            let option = if is_mariadb { "--mariadb " } else { "" };
            Alone::not_known(&format!(
                "the number of pages that `hugewise size innodb {option}--buffer-pool SIZE` prints, plus those in use, and \
                 SIZE what `SELECT @@innodb_buffer_pool_size` returns in the container"
            ))
        }
    }
}

/// By the command line, else by the server's own files; `None` where those cannot be read and may decide.
fn settings(source: &Source, target: &Target, file: Option<&str>) -> Option<Innodb> {
    let arguments = target.main.arguments.known()?;
    let options = file.and_then(|file| Options::read(source, &target.main.file("root"), file).ok());
    let is_known = Innodb::is_pool_among(arguments) || options.is_some();
    is_known.then(|| Innodb::of(options.unwrap_or_default().settings.pairs()).with_options(arguments))
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};
    use model::vms::Vm;
    use model::{Bytes, Reading};

    use super::Alone;

    fn guest(mapped: Bytes) -> Vm {
        Vm {
            pid: 7,
            program: "crosvm".to_owned(),
            name: None,
            kvm: Reading::Known(true),
            configured: Reading::absent("/proc/7/cmdline"),
            backing: Reading::absent("/proc/7/smaps"),
            mapped,
            found: None,
            kvm_pages: Reading::absent("/sys/kernel/debug/kvm"),
            mismatches: Vec::new(),
        }
    }

    #[test]
    fn a_guest_of_a_hypervisor_that_is_not_known_takes_the_pages_of_the_memory_that_it_maps() {
        let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        let counts = [("nr", 10), ("free", 4), ("resv", 1)];
        let tree = counts.into_iter().fold(Tree::new(), |tree, (name, pages)| {
            tree.line(&format!("{pool}/{name}_hugepages"), pages)
        });
        let source = Source::from_tree("made", tree);
        let said = |mapped| Alone::of_vm(&source, &guest(mapped)).to_string();
        assert_eq!(
            said(Bytes::gib(1)),
            "--for pool:2M=519, for 1G of guest memory beside 7 pages in use"
        );
        let unknown = said(Bytes(0));
        assert_eq!(unknown, "--for pool:2M=PAGES, where PAGES is the guest's memory / 2M");
    }

    #[test]
    fn a_pool_that_could_not_be_read_makes_no_number() {
        let source = Source::from_tree("made", Tree::new());
        let alone = Alone::of_vm(&source, &guest(Bytes::gib(1)));
        let says_how = alone
            .to_string()
            .contains("PAGES is 512 for 1G of guest memory + the pages that are in use");
        assert!(alone.goal().is_none() && says_how, "{alone}");
    }
}
