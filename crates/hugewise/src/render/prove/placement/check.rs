//! What is pinned wrongly, as a table with the lines that fix it.

use host::CpuList;
use model::placement::{Check, Fix, FixWith, Mispinned, Mistake};

use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, joined, lines, number, or, or_empty, pairs};

impl Show for Check {
    fn title(&self) -> String {
        "What is pinned wrongly".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        let time = (self.seconds > 0.0).then(|| format!(" in {} s", number(self.seconds)));
        let time = or(time, ", as they were captured");
        let unread = match self.unread {
            0 => String::new(),
            count => format!(" The CPUs of {} could not be read.", counted(count as usize, "thread")),
        };
        let found = match self.mistakes.len() {
            0 => "Nothing is pinned wrongly, as far as the rules see".to_owned(),
            count => counted(count, "mistake"),
        };
        vec![format!(
            "{found}: {} of {} were busy{time}.{unread}",
            self.busy,
            counted(self.threads as usize, "thread")
        )]
    }

    fn sheets(&self) -> Vec<Sheet> {
        self.mistakes.iter().map(sheet).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(mistake, fix)| (&Mispinned, &Fix);
            mistake => mistake.mistake, pid => mistake.pid, name => mistake.name, cpus => list(&mistake.cpus),
            better => list(&mistake.better), fix_with => place(fix.with), fix => fix.line,
        ];
        lines(fields, pairs(&self.mistakes, |mistake| &mistake.fixes))
    }
}

fn sheet(mistake: &Mispinned) -> Sheet {
    let title = format!("{}: {} (process {})", mistake.mistake, mistake.name, mistake.pid);
    let mut sheet = Sheet::new(&title, ["fix", "line"]);
    for fix in &mistake.fixes {
        for line in fix.line.lines() {
            sheet.row([place(fix.with), line]);
        }
    }
    sheet.note(sentence(mistake));
    sheet
}

fn sentence(mistake: &Mispinned) -> String {
    let (cpus, better) = (list(&mistake.cpus), list(&mistake.better));
    let (threads, nodes) = (joined(&mistake.threads, ", "), list(&mistake.nodes));
    match mistake.mistake {
        Mistake::SharedCore => format!(
            "Busy threads {threads} share one core (CPUs {cpus}), while the core of CPU {better} is idle. With both siblings busy, each gets \
             little more than half of a core."
        ),
        Mistake::SharedCpu => format!(
            "Busy threads {threads} may use CPU {cpus} only, and take turns. Cores are idle: CPUs {better} would do."
        ),
        Mistake::FirstThreadOnly => format!(
            "The first thread may use CPUs {better}, but busy threads {threads} may use CPUs {cpus}. `taskset -p` without -a pins one thread."
        ),
        Mistake::VcpusOnSiblings => format!(
            "Virtual CPUs (threads {threads}) are pinned to SMT siblings (CPUs {cpus}), and the guest is not told (threads=2): it takes them for \
             whole cores. CPUs {better} are cores of their own."
        ),
        Mistake::VcpusOnNodes => format!(
            "Virtual CPUs (threads {threads}) may run on nodes {nodes} (CPUs {cpus}), and the guest has no nodes. It fits on one: CPUs {better}."
        ),
        Mistake::RemoteMemory => format!(
            "Its busy threads run on node {} only, and {} % of its memory is on node {}.",
            mistake.nodes.first().copied().unwrap_or_default(),
            or_empty(mistake.percent.map(number)),
            mistake.nodes.get(1).copied().unwrap_or_default()
        ),
        Mistake::CpusetCut => format!(
            "Its cpuset asks for CPUs {cpus} and gets {better}: the group above, or CPUs that are offline, leave the others out."
        ),
        Mistake::IsolatedTogether => format!(
            "Busy threads {threads} may use several isolated CPUs ({better}) and are on {cpus}: the scheduler does not balance isolated CPUs."
        ),
    }
}

fn place(with: FixWith) -> &'static str {
    match with {
        FixWith::Shell => "shell, now",
        FixWith::Start => "at its start",
        FixWith::Systemd => "[Service]",
        FixWith::Plan => "hugewise plan",
        FixWith::Cpuset => "cpuset",
        FixWith::Libvirt => "<cputune>",
        FixWith::Vmx => "VMX file",
    }
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().copied().collect::<CpuList>().to_string()
}
