use super::{Outcome, Said, TABLE, filled, is_known, said};

fn of_line(line: &str) -> Option<Said> {
    super::of_line("app.log", 1, line)
}

#[test]
fn each_message_is_found_in_its_example_and_no_other_takes_it() {
    for message in &TABLE.messages {
        let said = of_line(&message.example).unwrap_or_else(|| panic!("not found: {}", message.example));
        assert!(
            std::ptr::eq(said.message, message),
            "{} is taken for {}",
            message.example,
            said.message.pattern
        );
        for text in said.fix.iter().chain([&said.means]) {
            assert!(!text.contains('{') && !text.contains('?'), "{text}");
        }
    }
}

#[test]
fn each_message_says_what_to_do_and_where_it_is_from() {
    for message in &TABLE.messages {
        assert!(
            !message.fix.is_empty() || message.outcome == Outcome::Tells,
            "{}",
            message.pattern
        );
        assert!(message.link.starts_with("https://"), "{}", message.pattern);
        assert!(!message.means.ends_with('.'), "{}", message.means);
    }
}

#[test]
fn configuration_is_no_log() {
    for text in [
        "vm.nr_hugepages = 1024\nkernel.shmmax = 68719476736\n",
        "[Service]\nLimitMEMLOCK=infinity\nExecStart=/usr/sbin/mysqld --large-pages\n",
        "huge_pages = on\nshared_buffers = 8GB\n",
        "transparent_hugepage=never hugepagesz=1G hugepages=4\n",
        "java -XX:+UseLargePages -Xmx8g\n",
        "# could not map anonymous shared memory: Cannot allocate memory\nhuge_pages = off\n",
    ] {
        assert!(!is_known(text), "{text}");
    }
}

#[test]
fn the_same_in_many_lines_is_said_once_with_its_first_place() {
    let line = "HINT:  This error usually means that PostgreSQL's request for a shared memory segment exceeded available memory, swap space, or huge pages. To reduce the request size (currently 123243331584 bytes), reduce";
    let all = said("pg.log", &format!("ready\n{line}\nother\n{line}\n"));
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].place.as_str(), all[0].times), ("pg.log:2", 2));
}

#[test]
fn amounts_have_units_and_their_number_of_pages() {
    let pattern = regex::Regex::new(r"(?P<kib>\d+) kB of (?P<page>\w+)").unwrap();
    let groups = pattern.captures("4097 kB of 2M").unwrap();
    let text = filled("{kib} are {pages} pages of {page}", &groups, &["kib", "page"]);
    assert_eq!(text, "4.0M are 3 pages of 2M");
}

#[test]
fn no_line_of_a_fault_is_lost_behind_others() {
    let jvm =
        |bytes: u64| format!("Failed to reserve and commit memory using large pages. req_addr: 0x0 bytes: {bytes}\n");
    let many: String = (1..60).map(jvm).collect();
    let fatal = "FATAL: could not map anonymous shared memory: Cannot allocate memory";
    let all = said("app.log", &format!("{many}{fatal}\n"));
    assert_eq!(all.len(), 4);
    assert_eq!((all[2].times, all[3].message.outcome), (57, Outcome::Fails));
    // What is harmless, or far away, says nothing of other lines.
    let harmless = "EAL: No free 2048 kB hugepages reported on node 1";
    for fault in [
        "dpdk|EMER|Unable to initialize DPDK: Invalid argument",
        "app: memlock limit too low",
    ] {
        assert_eq!(said("app.log", &format!("{harmless}\n{fault}\n")).len(), 2, "{fault}");
    }
    let other = "app: memlock limit too low";
    assert_eq!(said("app.log", &format!("{fatal}\n{other}\n")).len(), 1);
    assert_eq!(
        said("app.log", &format!("{fatal}\n{}{other}\n", "\n".repeat(9))).len(),
        2
    );
}

#[test]
fn fewer_pages_than_were_wanted_are_no_success() {
    let outcome = |row: &str| of_line(row).expect(row).message.outcome;
    assert_eq!(outcome("   2048K    800    1602    1602    NONE"), Outcome::Tells);
    assert_eq!(outcome("   2048K    800    1602     800    NONE"), Outcome::FallsBack);
}

#[test]
fn no_command_has_what_a_log_brings() {
    let open =
        |path: &str| format!("{{\"sysfsFile\":\"{path}\",\"currentValue\":\"never\",\"desiredValue\":\"always\"}}");
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(
        of_line(&open(path)).expect(path).fix,
        [format!("on the host: echo always > {path}, then restart mongod")]
    );
    assert!(of_line(&open("/sys/kernel/mm/transparent_hugepage/x; reboot #")).is_none());
    let page = "hugepages of size 2097152 reserved, but no mounted hugetlbfs found for that size";
    assert!(of_line(&format!("8 {page}")).is_some_and(|said| said.fix[0].contains("2097152")));
}

#[test]
fn other_lines_are_none() {
    for line in [
        "nginx: [emerg] could not open shared memory lock file",
        "mlockall: success, pages cannot be swapped out",
        "INFO memlock unlimited, raised open files",
        "crawler: failed to fetch large page http://localhost/",
        "kvm: NX Huge Pages mitigation is unavailable",
        "Huge Pages File System was skipped because of an unmet condition check (ConditionPathExists=/sys/kernel/mm/hugepages).",
        "training epoch 1: Bus error (core dumped)",
        "NCCL WARN Call to ibv_reg_mr failed with error Bad address",
        "Error: does not support option '-Xgcpolicy:balanced'",
        "app: locking memory failed over to disk",
    ] {
        assert!(of_line(line).is_none(), "{line}");
    }
}
