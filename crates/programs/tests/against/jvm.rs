//! Option sets of a JVM against `-XX:+PrintFlagsFinal` of the one that is installed.

use std::process::Command;

use host::{Snapshot, Source, Tree};
use model::{Bytes, Collector};
use programs::Jvm;

/// Variables of the environment, options (`@FILE` stands for a file with the text behind it), and what they mean.
struct Case {
    environment: &'static [(&'static str, &'static str)],
    options: &'static [&'static str],
    file: &'static str,
    heap: Option<Bytes>,
    pretouch: bool,
    collector: Option<Collector>,
}

const fn case(options: &'static [&'static str], heap: Option<Bytes>) -> Case {
    Case {
        environment: &[],
        options,
        file: "",
        heap,
        pretouch: false,
        collector: None,
    }
}

const fn mib(mib: u64) -> Option<Bytes> {
    Some(Bytes::mib(mib))
}

fn cases() -> Vec<Case> {
    use Collector::{G1, Parallel, Serial, Z};
    let heap = case;
    let mut cases = vec![
        heap(&["-Xmx256m"], mib(256)),
        heap(&["-Xmx256M"], mib(256)),
        heap(&["-Xmx262144k"], mib(256)),
        heap(&["-Xmx262144K"], mib(256)),
        heap(&["-Xmx268435456"], mib(256)),
        heap(&["-Xmx1g"], mib(1024)),
        heap(&["-Xmx1G"], mib(1024)),
        heap(&["-Xmx0x10000000"], mib(256)),
        heap(&["-Xmx256m", "-Xmx512m"], mib(512)),
        heap(&["-Xmx256m", "-XX:MaxHeapSize=512m"], mib(512)),
        heap(&["-XX:MaxHeapSize=512m", "-Xmx256m"], mib(256)),
        heap(&["-XX:MaxHeapSize=268435456"], mib(256)),
        heap(&["-Xms64m", "-Xmx256m", "-Xss1m"], mib(256)),
        heap(&["-Xmx256m", "-cp", "/nonexistent.jar"], mib(256)),
        heap(&["-cp", "classes", "-Xmx256m"], mib(256)),
        heap(
            &["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Xmx256m"],
            mib(256),
        ),
    ];
    let of = |options, collector| Case {
        collector: Some(collector),
        ..case(options, mib(256))
    };
    cases.extend([
        of(&["-Xmx256m", "-XX:+UseG1GC"], G1),
        of(&["-Xmx256m", "-XX:+UseParallelGC"], Parallel),
        of(&["-Xmx256m", "-XX:+UseSerialGC"], Serial),
        of(&["-Xmx256m", "-XX:+UseZGC"], Z),
    ]);
    let touched = |options| Case {
        pretouch: true,
        ..case(options, mib(256))
    };
    cases.extend([
        touched(&["-Xmx256m", "-XX:+AlwaysPreTouch"]),
        touched(&["-XX:-AlwaysPreTouch", "-Xmx256m", "-XX:+AlwaysPreTouch"]),
        heap(&["-Xmx256m", "-XX:+AlwaysPreTouch", "-XX:-AlwaysPreTouch"], mib(256)),
    ]);
    cases.extend(from_variables());
    cases.extend(from_files());
    cases
}

fn from_variables() -> [Case; 6] {
    let set = |environment, options, heap| Case {
        environment,
        ..case(options, heap)
    };
    [
        set(&[("JAVA_TOOL_OPTIONS", "-Xmx512m")], &["-Xmx256m"], mib(256)),
        set(&[("JAVA_TOOL_OPTIONS", "-Xmx512m")], &["-Xms8m"], mib(512)),
        set(&[("JDK_JAVA_OPTIONS", "-Xmx512m")], &["-Xmx256m"], mib(256)),
        set(&[("JDK_JAVA_OPTIONS", "-Xmx512m")], &["-Xms8m"], mib(512)),
        set(
            &[("JDK_JAVA_OPTIONS", "-Xmx512m"), ("JAVA_TOOL_OPTIONS", "-Xmx128m")],
            &["-Xms8m"],
            mib(512),
        ),
        set(&[("_JAVA_OPTIONS", "-Xmx512m")], &["-Xmx256m"], mib(512)),
    ]
}

fn from_files() -> [Case; 4] {
    let in_file = |options, file, heap| Case {
        file,
        ..case(options, heap)
    };
    [
        in_file(&["@FILE"], "-Xmx512m\n", mib(512)),
        in_file(&["-Xmx256m", "@FILE"], "# heap\n-Xmx512m # all\n-Xms8m", mib(512)),
        in_file(&["@FILE", "-Xmx256m"], "-Xmx512m -Xms8m", mib(256)),
        in_file(&["@FILE"], "\"-Xmx512m\" '-Xms8m'\n", mib(512)),
    ]
}

impl Case {
    fn arguments(&self, file: &str) -> Vec<String> {
        self.options.iter().map(|option| option.replace("FILE", file)).collect()
    }

    /// As a process of that command line is read.
    fn read(&self) -> Jvm {
        let words: String = self
            .arguments("/srv/options")
            .iter()
            .map(|word| format!("{word}\0"))
            .collect();
        let variables: String = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}\0"))
            .collect();
        let tree = Tree::new()
            .file("/proc/2/status", "Name:\tjava\nPPid:\t1\nVmRSS:\t1 kB\n")
            .file("/proc/2/cmdline", format!("java\0{words}-version\0"))
            .file("/proc/2/environ", variables)
            .file("/proc/2/root/srv/options", self.file);
        let source = Source::from_tree("a JVM", tree);
        let found = programs::programs(&source, &Snapshot::take(&source));
        let found = found.known().expect("a process");
        found[0].jvm().expect("read").expect("a JVM").clone()
    }
}

#[test]
fn options_are_taken_from_the_environment_files_and_arguments_in_the_jvm_s_order() {
    for (nth, case) in cases().iter().enumerate() {
        let read = case.read();
        let expected = (case.heap, case.pretouch, case.collector);
        assert_eq!(
            (read.heap_max, read.pretouch, read.collector),
            expected,
            "{nth}: {:?}",
            case.options
        );
    }
}

#[test]
fn options_are_taken_as_the_installed_jvm_takes_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("options");
    for case in cases() {
        std::fs::write(&path, case.file).expect("written");
        let mut java = Command::new("java");
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"] {
            java.env_remove(name);
        }
        java.envs(case.environment.iter().copied());
        java.args(case.arguments(&path.display().to_string()))
            .args(["-XX:+PrintFlagsFinal", "-version"]);
        let Ok(output) = java.output() else {
            return testing::missing("java");
        };
        if !output.status.success() {
            testing::skipped("this JVM does not start with one of the options");
            continue;
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let flag = |name: &str| {
            let line = said.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
            line.and_then(|line| Some(line.split_whitespace().nth(3)?.to_owned()))
                .expect("a flag")
        };
        let read = case.read();
        let heap = read.heap_max.expect("a heap").0.to_string();
        assert_eq!(
            (flag("MaxHeapSize"), flag("AlwaysPreTouch")),
            (heap, read.pretouch.to_string()),
            "{:?}",
            case.options
        );
        if let Some(collector) = read.collector {
            let name = match collector {
                Collector::G1 => "UseG1GC",
                Collector::Parallel => "UseParallelGC",
                Collector::Serial => "UseSerialGC",
                Collector::Shenandoah => "UseShenandoahGC",
                Collector::Z => "UseZGC",
            };
            assert_eq!(flag(name), "true", "{:?}", case.options);
        }
    }
}
