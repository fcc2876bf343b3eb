//! The rule of `logs` where it fires and where it must not.

use host::{Source, Tree};
use model::findings::{Finding, Severity};
use programs::Evidence;
use programs::config::Given;

use crate::files_tests::{found, judged};
use crate::judge;
use crate::machines::machine;

const POSTGRES: &str = "2024-01-01 12:00:00 UTC [1] FATAL:  could not map anonymous shared memory: Cannot allocate memory
2024-01-01 12:00:00 UTC [1] HINT:  This error usually means that PostgreSQL's request for a shared memory segment exceeded available memory, swap space, or huge pages. To reduce the request size (currently 8965324800 bytes), reduce PostgreSQL's shared memory usage.
";
const XMRIG: &str = " * HUGE PAGES   supported\n[2024-01-01] randomx  allocated 2336 MB (2080+256) huge pages 100% 1168/1168 +JIT (9 ms)\n";

fn told(log: &str) -> Finding {
    found("L01", &[("program.txt", log)])
}

#[test]
fn l01_a_line_is_as_severe_as_what_comes_of_it() {
    let failed = told(POSTGRES);
    assert_eq!(failed.severity, Severity::Error);
    assert!(
        failed.consequence.starts_with("PostgreSQL did not start: "),
        "{failed:?}"
    );
    assert!(failed.fix[0].contains("4275 of 2M"), "{failed:?}");
    let partly = told(&XMRIG.replace("100% 1168/", "97% 1131/"));
    assert_eq!(partly.severity, Severity::Warning);
    assert!(partly.consequence.contains("1131 of 1168 huge pages"), "{partly:?}");
    assert_eq!(told(XMRIG).severity, Severity::Info);
}

#[test]
fn l01_lines_above_a_command_s_output_are_read_too() {
    let shown =
        "$ docker run hashicorp/vault server\nError initializing core: Failed to lock memory: cannot allocate memory\n";
    assert!(told(shown).consequence.starts_with("Vault"), "{:?}", told(shown));
    let (command, _) = shown.split_once('\n').unwrap();
    assert_eq!(judged(&[("program.txt", command)]).of("L01").count(), 0);
}

#[test]
fn a_general_line_is_left_out_beside_a_better_one() {
    let (first, _) = POSTGRES.split_once('\n').unwrap();
    assert_ne!(told(first).consequence, told(POSTGRES).consequence);
}

#[test]
fn a_setting_that_the_machine_lacks_is_no_fix() {
    let log = "1:M # WARNING You have Transparent Huge Pages (THP) support enabled in your kernel.\n";
    let fixes = |evidence: Evidence| {
        let mut given = Given::default();
        given.add("redis.log", log.as_bytes(), None).unwrap();
        let diagnosis = judge(&evidence.with_files(given));
        diagnosis.of("L01").next().expect("L01").fix.len()
    };
    let on = |tree| Evidence::gather(&Source::from_tree("a machine", tree));
    assert_eq!(
        (fixes(Evidence::of_files(Given::default())), fixes(on(machine()))),
        (1, 1)
    );
    assert_eq!(
        fixes(on(Tree::new().file("/proc/meminfo", "MemTotal: 8000000 kB\n"))),
        0
    );
}
