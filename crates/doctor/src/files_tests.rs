//! Each check on files where it fires and on files where it must not.

use host::Source;
use model::findings::{Confidence, Diagnosis, Finding, Severity};
use programs::Evidence;
use programs::config::Given;

use crate::judge;
use crate::machines::{anonymous, hugetlb, machine, pool, process};

pub(crate) fn given(files: &[(&str, &str)]) -> Given {
    let mut given = Given::default();
    for (path, text) in files {
        given
            .add(path, text.as_bytes(), None)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    given
}

pub(crate) fn judged(files: &[(&str, &str)]) -> Diagnosis {
    judge(&Evidence::of_files(given(files)))
}

/// The first finding of a rule.
#[track_caller]
pub(crate) fn found(id: &str, files: &[(&str, &str)]) -> Finding {
    assert_eq!(given(files).garbled, []);
    let diagnosis = judged(files);
    let finding = diagnosis
        .of(id)
        .next()
        .cloned()
        .unwrap_or_else(|| panic!("{id}: {diagnosis:#?}"));
    assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    let place = |proof: &model::findings::Proof| files.iter().any(|(path, _)| proof.source.starts_with(path));
    assert!(finding.evidence.iter().any(place), "{finding:?}");
    finding
}

/// The rule looked, and found nothing.
#[track_caller]
pub(crate) fn clear(id: &str, files: &[(&str, &str)]) {
    assert_eq!(given(files).garbled, []);
    let diagnosis = judged(files);
    assert_eq!(diagnosis.of(id).count(), 0, "{id}: {diagnosis:#?}");
    assert!(
        diagnosis.not_judged.iter().all(|not| not.id != id),
        "{id}: {diagnosis:#?}"
    );
}

/// The rule, or a part of it, could not be applied, and why.
#[track_caller]
pub(crate) fn unjudged(id: &str, files: &[(&str, &str)], why: &str) {
    let diagnosis = judged(files);
    let mut all = diagnosis.not_judged.iter().chain(&diagnosis.partly);
    let reason = all.find(|not| not.id == id).map(|not| not.reason.as_str());
    assert!(reason.is_some_and(|reason| reason.contains(why)), "{id}: {reason:?}");
}

const POOL: (&str, &str) = ("sysctl.conf", "vm.nr_hugepages = 512\n");
const NO_POOL: (&str, &str) = ("sysctl.conf", "vm.swappiness = 1\n");

#[test]
fn a_pool_that_a_script_sets_to_an_unknown_number_is_not_taken_as_empty() {
    let server = ("postgresql.conf", "huge_pages = on\nshared_buffers = 4GB\n");
    let other = "echo 4 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages\n";
    found("F02", &[server, ("hp.sh", other)]);
    let both = format!("echo $PAGES > /proc/sys/vm/nr_hugepages\n{other}");
    unjudged("F02", &[server, ("hp.sh", &both)], "hp.sh:1");
}

#[test]
fn files_that_say_nothing_wrong_are_well_and_the_rest_is_named_once() {
    let well = judged(&[POOL]);
    assert_eq!(well.findings, []);
    let mut reasons: Vec<&str> = well.not_judged.iter().map(|not| not.reason.as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    assert!(reasons.len() <= 19, "grouped: {reasons:#?}");
    unjudged("A03", &[POOL], "running machine");
}

#[test]
fn pools_of_boot_and_sysctl() {
    let boot = |line| ("cmdline", line);
    let one_g = "root=/dev/sda default_hugepagesz=1G hugepagesz=2M hugepages=512";
    found("A05", &[boot(one_g)]);
    clear("A05", &[boot("root=/dev/sda default_hugepagesz=2M hugepages=512")]);
    let on_demand = ("sysctl.conf", "vm.nr_overcommit_hugepages = 512\n");
    assert_eq!(found("A08", &[on_demand]).severity, Severity::Info);
    let server = ("postgresql.conf", "huge_pages = on\nshared_buffers = 512MB\n");
    assert_eq!(found("A08", &[on_demand, server]).severity, Severity::Warning);
    clear(
        "A08",
        &[("sysctl.conf", "vm.nr_overcommit_hugepages = 512\nvm.nr_hugepages = 5\n")],
    );
    let two = found("A12", &[POOL, ("a/sysctl.d/99.conf", "vm.nr_hugepages = 4\n")]);
    assert_eq!(two.evidence.len(), 2);
    found("A12", &[boot("root=/dev/sda hugepages=9"), POOL]);
    clear("A12", &[boot("root=/dev/sda hugepages=512"), POOL]);
    let counted = |pages| found_of_1g(&format!("vm.nr_hugepages = {pages}\n"));
    let many = counted(8192).expect("a finding");
    assert!(
        many.consequence.contains("8T") && many.fix[0].contains("= 16 at"),
        "{many:?}"
    );
    let few = counted(1024).map(|finding| finding.severity);
    assert_eq!((many.severity, few), (Severity::Warning, Some(Severity::Info)));
    assert_eq!(counted(512), None);
    found("A13", &[boot("root=/dev/sda hugepagesz=3M hugepages=4")]);
    clear("A13", &[boot(one_g)]);
    found("A14", &[boot("root=/dev/sda hugepages=1 hugepagesz=2M hugepages=4")]);
    clear("A14", &[boot(one_g)]);
    found(
        "B05",
        &[("sysctl.conf", "vm.nr_hugepages = 512\nkernel.shmmax = 33554432\n")],
    );
    clear(
        "B05",
        &[(
            "sysctl.conf",
            "vm.nr_hugepages = 512\nkernel.shmmax = 18446744073692774399\n",
        )],
    );
    unjudged("A12", &[("sysctl.conf", "vm.nr_hugepages = lots\n")], "sysctl.conf:1");
}

/// A12 of a count for a default size of 1G.
fn found_of_1g(sysctl: &str) -> Option<Finding> {
    let files = [
        ("cmdline", "root=/dev/sda default_hugepagesz=1GB"),
        ("sysctl.conf", sysctl),
    ];
    judged(&files).of("A12").next().cloned()
}

/// Lines that their readers accept, which look like others that are refused.
#[test]
fn i01_lines_that_are_accepted() {
    let tmpfiles = (
        "tmpfiles.d/a.conf",
        "d /run/app 0755 root root -\nL+ /etc/x - - - - /y\n",
    );
    let sysfs = (
        "sysfs.conf",
        "devices/system/cpu/cpu0/online = 0\nmode devices/system/cpu/cpu0/online = 0644\n",
    );
    let profile = (
        "tuned.conf",
        "[main]\ninclude=a\n[sysctl]\nvm.nr_hugepages=\"${n}\"\nkernel.shmmax = >4096\n",
    );
    for accepted in [tmpfiles, sysfs, profile] {
        clear("I01", &[accepted]);
    }
    unjudged(
        "A08",
        &[(
            "tuned.conf",
            "[main]\n[sysctl]\nvm.nr_hugepages=${n}\nvm.nr_overcommit_hugepages=>8\n",
        )],
        "tuned.conf:3",
    );
    let kubelet = |amount: &str| {
        format!(
            "apiVersion: v1\nkind: KubeletConfiguration\nmemoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits:\n    hugepages-1Gi: {amount}\n"
        )
    };
    clear("I01", &[("kubelet.yaml", &kubelet("\"0\""))]);
    assert_eq!(given(&[("kubelet.yaml", &kubelet("1Gi"))]).garbled.len(), 1);
    // openshift-kni/numaresources-operator#80
    let sums = |reserved: &str, more: &str| {
        let text = format!(
            "apiVersion: v1\nkind: KubeletConfiguration\nmemoryManagerPolicy: Static\nsystemReserved: {{memory: 512Mi}}\n{more}reservedMemory:\n- numaNode: 0\n  limits: {{memory: 512Mi}}\n- numaNode: 1\n  limits: {{memory: {reserved}}}\n"
        );
        given(&[("kubelet.yaml", &text)]).garbled.len()
    };
    let all = "kubeReserved: {memory: 512Mi}\nevictionHard: {memory.available: 200Mi}\n";
    for (reserved, more, refused) in [
        ("712Mi", all, 0),
        ("512Mi", all, 1),
        ("612Mi", "kubeReserved: {memory: 512Mi}\n", 0),
        ("512Mi", "kubeReserved: {memory: 512Mi}\n", 1),
        ("512Mi", "", 0),
        ("512Mi", &all.replace("200Mi", "5%"), 0),
    ] {
        assert_eq!(sums(reserved, more), refused, "{reserved} {more}");
    }
    for key in ["kubeReserved", "systemReserved"] {
        let keeps = |resource: &str| {
            format!("apiVersion: v1\nkind: KubeletConfiguration\n{key}: {{memory: 512Mi, {resource}: 100Mi}}\n")
        };
        clear("I01", &[("kubelet.yaml", &keeps("ephemeral-storage"))]);
        assert_eq!(
            given(&[("kubelet.yaml", &keeps("hugepages-2Mi"))]).garbled.len(),
            1,
            "{key}"
        );
    }
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let unit = |command: &str| format!("[Service]\nExecStart={command}\n");
    for accepted in [
        format!("/bin/echo \"never => {file}\""),
        format!("/bin/echo 'set by: echo never > {file}'"),
        format!("/bin/printf never => {file}"),
        format!("/bin/sh -c 'echo never > {file}'"),
    ] {
        clear("I01", &[("thp.service", &unit(&accepted))]);
    }
    for refused in [
        format!("/bin/echo never > {file}"),
        format!("/bin/echo never >>{file}"),
        format!("/bin/echo never | tee {file}"),
    ] {
        assert_eq!(given(&[("thp.service", &unit(&refused))]).garbled.len(), 1, "{refused}");
    }
}

#[test]
fn services_and_limits() {
    let limits = ("limits.conf", "oracle soft memlock unlimited\n");
    let unit = |lines: &str| format!("[Service]\n{lines}\n");
    let tunables = |value: &str| unit(&format!("Environment=GLIBC_TUNABLES={value}"));
    for (id, fires, not) in [
        ("B03", unit("User=oracle"), unit("User=oracle\nLimitMEMLOCK=infinity")),
        ("B03", unit("User=oracle"), unit("User=scott")),
        ("D12", unit("MemoryTHP=madvise"), unit("MemoryTHP=inherit")),
        (
            "D16",
            tunables("glibc.malloc.hugetlb=1"),
            tunables("glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1"),
        ),
        (
            "D18",
            unit("Environment=HUGETLB_MORECORE=yes"),
            unit("Environment=HOME=/"),
        ),
    ] {
        found(id, &[limits, ("db.service", &fires)]);
        clear(id, &[limits, ("db.service", &not)]);
    }
    unjudged("B03", &[limits], "unit");
    let writes = unit("ExecStart=/bin/sh -c 'echo never > /sys/kernel/mm/transparent_hugepage/enabled'");
    let booted = |policy| [("thp.service", writes.as_str()), ("cmdline", policy)];
    found("D22", &booted("root=/ transparent_hugepage=always"));
    clear("D22", &booted("root=/ transparent_hugepage=never"));
}

#[test]
fn d15_an_allocator_asks_for_pages_of_a_pool() {
    let two = (
        "db.service",
        "[Service]\nEnvironment=GLIBC_TUNABLES=glibc.malloc.hugetlb=2\n",
    );
    found("D15", &[two, NO_POOL]);
    clear("D15", &[two, POOL]);
    unjudged("D15", &[two], "sysctl");
    let reserve = (
        "db.service",
        "[Service]\nEnvironment=MIMALLOC_RESERVE_HUGE_OS_PAGES=2\n",
    );
    assert!(found("D15", &[reserve, POOL]).fix[0].contains("hugepagesz=1G hugepages=2"));
}

#[test]
fn d15_dotnet_needs_a_limit_of_its_heap() {
    let dotnet = |more: &str| format!("[Service]\nEnvironment=DOTNET_GCLargePages=1\n{more}");
    let alone = found("D15", &[("app.service", &dotnet(""))]);
    assert!(alone.link.contains("dotnet"), "{alone:?}");
    assert!(alone.consequence.contains("unless its runtimeconfig.json"), "{alone:?}");
    assert_eq!(alone.confidence, Confidence::Medium);
    for limit in [
        "DOTNET_GCHeapHardLimit=0x20000000",
        "DOTNET_GCHeapHardLimitPercent=50",
        "COMPlus_GCHeapHardLimitSOH=0x10",
    ] {
        let limited = dotnet(&format!("Environment={limit}\n"));
        clear("D15", &[("app.service", &limited), POOL]);
        let short = found("D15", &[("app.service", &limited), NO_POOL]);
        assert!(
            short.consequence.starts_with("the program does not start: "),
            "{short:?}"
        );
    }
    // A container's limit of memory stands for one.
    let run = |limit: &str| format!("docker run {limit} -e DOTNET_GCLargePages=1 app\n");
    found("D15", &[("run.sh", &run("")), POOL]);
    clear("D15", &[("run.sh", &run("-m 4g")), POOL]);
    let pod = |limit: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n  - name: a\n    image: app\n    \
             env: [{{name: DOTNET_GCLargePages, value: \"1\"}}]\n{limit}"
        )
    };
    found("D15", &[("pod.yaml", &pod("")), POOL]);
    clear(
        "D15",
        &[("pod.yaml", &pod("    resources: {limits: {memory: 4Gi}}\n")), POOL],
    );
}

#[test]
fn java_and_the_pool() {
    let java = ("start.sh", "java -XX:+UseLargePages -Xmx2g Main\n");
    let short = found("E01", &[java, POOL]);
    assert!(
        short.consequence.contains("1164 pages of 2M, and the pool has 512"),
        "{}",
        short.consequence
    );
    assert!(short.fix[0].contains("1164 pages"), "{:?}", short.fix);
    clear("E01", &[java, ("sysctl.conf", "vm.nr_hugepages = 1200\n")]);
    clear("E01", &[("start.sh", "java -Xmx2g Main\n"), NO_POOL]);
    unjudged("E01", &[java], "the size of the pools");
    // The pages are in a pool of another size than the default.
    let other = ("cmdline", "ro default_hugepagesz=1G hugepagesz=2M hugepages=4096");
    let fix = found("E01", &[java, other]).fix.join("\n");
    assert!(
        fix.contains("request 2 pages of 1G") && fix.contains("-XX:LargePageSizeInBytes=2M"),
        "{fix}"
    );
    // JDK 25 takes smaller pages where those of the size that it names are not there: `Heap: page_size=2M`.
    let named = (
        "jvm1.options",
        "-XX:+UseLargePages\n-XX:LargePageSizeInBytes=1g\n-Xmx1g\n",
    );
    let smaller = found("E01", &[named, ("cmdline", "ro hugepages=700")]);
    assert_eq!(smaller.severity, Severity::Warning, "{smaller:?}");
    let text = &smaller.consequence;
    assert!(
        text.contains("with JDK 17 (JDK 25 takes pages of 2M") && text.contains("its heap needs"),
        "{text}"
    );
    assert!(
        smaller.fix.join("\n").contains("LargePageSizeInBytes=2M"),
        "{smaller:?}"
    );
    let neither = found("E01", &[named, ("cmdline", "ro hugepages=500")]);
    assert!(neither.consequence.contains("will use base pages:"), "{neither:?}");
    let conf = ("postgresql.conf", "huge_pages = on\nshared_buffers = 4GB\n");
    assert!(
        found("F02", &[conf, other])
            .fix
            .join("\n")
            .contains("huge_page_size = 2MB")
    );
    let small = ("cmdline", "ro default_hugepagesz=1G hugepagesz=64K hugepages=131072");
    let fix = found("F02", &[conf, small]).fix.join("\n");
    assert!(fix.contains("huge_page_size = 64kB"), "{fix}");
    // Options for one version or the other of the JVM.
    let options = "-Xmx2g\n8-13:-XX:+UseLargePages\n14-:-XX:+UseG1GC\n";
    clear("E01", &[("jvm.options", options), NO_POOL]);
    found("E01", &[("jvm.options", &options.replace("14-", "11-")), NO_POOL]);
    unjudged("E01", &[("start.sh", "java -XX:+UseLargePages Main\n"), POOL], "-Xmx");
    found(
        "E03",
        &[("start.sh", "java -XX:+UseLargePages -XX:LargePageSizeInBytes=2 Main\n")],
    );
    clear("E03", &[java]);
    let transparent = ("start.sh", "java -XX:+UseTransparentHugePages Main\n");
    found("E05", &[transparent, ("cmdline", "root=/ transparent_hugepage=never")]);
    clear(
        "E05",
        &[transparent, ("cmdline", "root=/ transparent_hugepage=madvise")],
    );
    found("E13", &[("start.sh", "java -XX:+UseSHM Main\n")]);
    clear("E13", &[java]);
}

#[test]
fn databases_share_one_pool_in_turn() {
    let postgres = |text| ("postgresql.conf", text);
    assert_eq!(
        found("F01", &[postgres("shared_buffers = 8GB\n"), POOL]).severity,
        Severity::Warning
    );
    assert_eq!(
        found("F01", &[postgres("shared_buffers = 256MB\n"), NO_POOL]).severity,
        Severity::Info
    );
    clear("F01", &[postgres("shared_buffers = 512MB\n"), POOL]);
    clear("F01", &[postgres("huge_pages = off\nshared_buffers = 8GB\n"), NO_POOL]);
    found("F02", &[postgres("huge_pages = on\nshared_buffers = 2GB\n"), POOL]);
    clear("F02", &[postgres("huge_pages = on\nshared_buffers = 512MB\n"), POOL]);
    unjudged("F01", &[postgres("shared_buffers = much\n"), POOL], "postgresql.conf:1");
    for word in ["ON", "On", "true", "'yes'", "1"] {
        let conf = format!("huge_pages = {word}\nshared_buffers = 2GB\n");
        found("F02", &[("postgresql.conf", &conf), POOL]);
        clear("F01", &[("postgresql.conf", &conf), POOL]);
    }
    for word in ["OFF", "no", "False", "0"] {
        let conf = format!("huge_pages = {word}\nshared_buffers = 8GB\n");
        clear("F01", &[("postgresql.conf", &conf), NO_POOL]);
    }
    let needs = found("F02", &[postgres("huge_pages = on\nshared_buffers = 8GB\n"), NO_POOL]).consequence;
    assert!(needs.contains("needs at least 4200 pages of 2M"), "{needs}");
    let mysql = ("my.cnf", "[mysqld]\nlarge-pages\ninnodb_buffer_pool_size = 768M\n");
    let needs = found("F05", &[mysql, NO_POOL]).consequence;
    assert!(needs.contains("needs at least 396 pages of 2M"), "{needs}");
    clear("F05", &[mysql, POOL]);
    let second = found("F05", &[postgres("shared_buffers = 512MB\n"), mysql, POOL]).consequence;
    assert!(second.contains("of them left after other demands"), "{second}");
    let mariadb = ("mariadb.cnf", "[mariadbd]\nlarge-pages\ninnodb_buffer_pool_size = 1G\n");
    let needs = found("F05", &[mariadb, NO_POOL]).consequence;
    assert!(needs.contains("needs at least 646 pages of 2M"), "{needs}");
}

#[test]
fn f02_a_pool_with_more_than_the_servers_take() {
    let server = (
        "postgresql.conf",
        "huge_pages = on\nshared_buffers = 12GB\nmax_connections = 100\n",
    );
    let of = |pages: &str| judged(&[server, ("sysctl.conf", pages)]).of("F02").next().cloned();
    let idle = of("vm.nr_hugepages = 9510\n").expect("a finding");
    assert_eq!(idle.severity, Severity::Info);
    assert!(
        idle.fix[0].contains("6289 pages of 2M or more in sysctl.conf:1"),
        "{idle:?}"
    );
    assert_eq!(of("vm.nr_hugepages = 6600\n"), None);
    assert_eq!(
        of("vm.nr_hugepages = 6144\n").map(|short| short.severity),
        Some(Severity::Error)
    );
}

#[test]
fn each_server_of_a_file_takes_pages_of_its_own() {
    let sized = |one: &str, two: &str| {
        format!("[mysqld]\nlarge-pages\ninnodb_buffer_pool_size = 768M\n[{one}]\nport = 1\n[{two}]\nport = 2\n")
    };
    for (one, two) in [
        ("mysqld1", "mysqld2"),
        ("mysqld@a", "mysqld@b"),
        ("mariadb.a", "mariadb.b"),
    ] {
        let text = sized(one, two);
        let diagnosis = judged(&[("my.cnf", &text), POOL]);
        let short = &diagnosis.of("F05").last().expect("a finding").consequence;
        let name = two.trim_start_matches("mysqld").trim_start_matches("mariadb");
        assert!(
            short.contains(&format!("the server of my.cnf [mysqld{name}] will use")),
            "{short}"
        );
    }
    clear("F05", &[("my.cnf", &sized("mysqld1", "mysqldump")), POOL]);
}

#[test]
fn mariadb_locks_its_memory_by_its_file_and_mysql_as_root_alone() {
    let conf = ("my.cnf", "[mysqld]\nmemlock\ninnodb_buffer_pool_size = 8G\n");
    let unit = |program: &str, limit: &str| {
        let limit = if limit.is_empty() {
            String::new()
        } else {
            format!("LimitMEMLOCK={limit}\n")
        };
        format!("[Service]\nUser=mysql\nExecStart=/usr/sbin/{program} $OPTS\n{limit}")
    };
    let low = found("B02", &[("db.service", &unit("mariadbd", "1G")), conf]);
    assert!(
        low.consequence
            .contains("db.service locks 8G or more, and LimitMEMLOCK= is 1G"),
        "{low:?}"
    );
    found("B02", &[("db.service", &unit("mariadbd", "")), conf]);
    clear("B02", &[("db.service", &unit("mariadbd", "9G")), conf]);
    clear("B02", &[("db.service", &unit("mysqld", "1G")), conf]);
    let default = |limit: &str| format!("[Manager]\nDefaultLimitMEMLOCK={limit}\n");
    let by_default = |limit: &str, own: &str| {
        let (system, unit) = (default(limit), unit("mariadbd", own));
        let files = [("system.conf", &*system), ("db.service", &*unit), conf];
        judged(&files).of("B02").next().map(|own| own.consequence.clone())
    };
    let low = by_default("1G", "").expect("a finding");
    assert!(low.contains("and DefaultLimitMEMLOCK= is 1G"), "{low}");
    assert!(by_default("infinity", "1G").is_some());
    assert_eq!(by_default("infinity", ""), None);
    let off = ("my.cnf", "[mysqld]\nmemlock\nskip-memlock\n");
    clear("B02", &[("db.service", &unit("mariadbd", "1G")), off]);
}

#[test]
fn segments_are_limited_where_a_program_makes_some() {
    let low = ("sysctl.conf", "vm.nr_hugepages = 2200\nkernel.shmmax = 33554432\n");
    let oracle = ("initA.ora", "sga_target=4G\n");
    let mariadb = ("mariadb.cnf", "[mariadbd]\nlarge-pages\ninnodb_buffer_pool_size = 1G\n");
    let mysql = ("my.cnf", "[mysqld]\nlarge-pages\ninnodb_buffer_pool_size = 1G\n");
    let off = ("postgresql.conf", "huge_pages = off\n");
    for files in [&[low, oracle][..], &[low, mysql], &[low, off], &[low, mariadb, oracle]] {
        found("B05", files);
    }
    clear("B05", &[low, ("postgresql.conf", "shared_buffers = 2GB\n")]);
    clear("B05", &[low, mariadb]);
}

#[test]
fn an_instance_of_oracle_takes_a_page_more_than_its_sga() {
    let pool = |pages: u32| format!("vm.nr_hugepages = {pages}\n");
    let by_hand = "sga_target=0\ndb_cache_size=3G\nshared_pool_size=1G\n";
    for parameters in ["sga_target=4G\n", by_hand] {
        let own = ("initA.ora", parameters);
        let short = found("A04", &[own, ("sysctl.conf", &pool(2048))]);
        assert!(
            short.consequence.contains("needs at least 2049 pages of 2M"),
            "{short:?}"
        );
        assert!(
            short.fix[0].contains("request 2052 pages of 2M or more (3 of them to spare)"),
            "{short:?}"
        );
        clear("A04", &[own, ("sysctl.conf", &pool(2049))]);
    }
    clear(
        "A04",
        &[
            ("initA.ora", "use_large_pages=FALSE\ndb_cache_size=8G\n"),
            ("sysctl.conf", &pool(2048)),
        ],
    );
}

#[test]
fn the_user_of_an_instance_may_lock_its_sga() {
    let own = ("initA.ora", "sga_target=20G\nuse_large_pages=ONLY\n");
    let pool = "vm.nr_hugepages = 10244\n";
    let limits = |kib: &str| format!("oracle soft memlock {kib}\noracle hard memlock {kib}\n");
    let low = found(
        "B02",
        &[own, ("limits.conf", &limits("7340032")), ("sysctl.conf", pool)],
    );
    assert!(
        low.severity == Severity::Error && low.consequence.contains("its user may lock 7G"),
        "{low:?}"
    );
    assert!(
        low.fix[0].contains("limits.conf:2: `oracle hard memlock unlimited` (or 20973568 and more"),
        "{low:?}"
    );
    for lines in ["20973568", "unlimited", "0\nother soft nofile 1\noracle - memlock -1"] {
        clear("B02", &[own, ("limits.conf", &limits(lines)), ("sysctl.conf", pool)]);
    }
    let group = format!("{pool}vm.hugetlb_shm_group = 54321\n");
    clear("B02", &[own, ("limits.conf", &limits("64")), ("sysctl.conf", &group)]);
    let base = ("initA.ora", "sga_target=20G\nuse_large_pages=FALSE\n");
    clear("B02", &[base, ("limits.conf", &limits("64")), ("sysctl.conf", pool)]);
    let on = |release: &str| {
        let tree = machine().line("/proc/sys/kernel/osrelease", release);
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = given(&[own, ("limits.conf", &limits("64"))]);
        judge(&evidence).of("B02").count()
    };
    assert_eq!((on("5.15.0"), on("6.1.0")), (1, 0));
}

/// shmctl(SHM_LOCK) of segments on base pages, whatever the kernel; those of huge pages are passed over.
#[test]
fn an_sga_that_is_locked_needs_the_limit_on_every_kernel() {
    let own = ("initA.ora", "sga_target=4G\nlock_sga=true\n");
    let limits = |kib: &'static str| ("limits.conf", kib);
    let (low, enough) = (limits("oracle - memlock 64\n"), limits("oracle - memlock 4196352\n"));
    let finding = found("B02", &[own, low]);
    assert_eq!(finding.severity, Severity::Error);
    let text = format!("{finding:?}");
    assert!(!text.contains("5.16") && !text.contains("hugetlb_shm_group"), "{text}");
    assert!(finding.fix[0].contains("4196352 and more"), "{text}");
    clear("B02", &[own, enough]);
    let base = ("initA.ora", "sga_target=4G\nlock_sga=true\nuse_large_pages=FALSE\n");
    let group = ("sysctl.conf", "vm.hugetlb_shm_group = 54321\n");
    found("B02", &[base, low, group]);
    clear("B02", &[own, low, group]);
    // It is not locked by FALSE, and is refused together with memory_target.
    let plain = ("initA.ora", "sga_target=4G\nlock_sga=false\nuse_large_pages=FALSE\n");
    let amm = ("initA.ora", "memory_target=8G\nsga_target=4G\nlock_sga=true\n");
    clear("B02", &[plain, low]);
    clear("B02", &[amm, low]);
    let tree = machine().line("/proc/sys/kernel/osrelease", "6.1.0");
    let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
    evidence.files = given(&[own, low]);
    assert_eq!(judge(&evidence).of("B02").count(), 1);
}

#[test]
fn the_limit_of_all_segments_counts_base_pages() {
    let shmall = |pages: u64| format!("kernel.shmall = {pages}\n");
    let own = |path, sga| (path, sga);
    let one = own("initA.ora", "sga_target=30G\n");
    let finding = found("B05", &[one, ("sysctl.conf", &shmall(7_864_319))]);
    assert!(
        finding.severity == Severity::Error && finding.consequence.contains("with pages of 4K its SGA takes 7864320"),
        "{finding:?}"
    );
    clear(
        "B05",
        &[
            one,
            ("sysctl.conf", &format!("{}vm.nr_hugepages = 8\n", shmall(7_864_320))),
        ],
    );
    // Of two it is not known whether they run together, and files of /dev/shm are no segments.
    let pool = format!("{}vm.nr_hugepages = 8\n", shmall(7_864_320));
    clear("B05", &[one, ("initB.ora", "sga_target=2G\n"), ("sysctl.conf", &pool)]);
    let amm = ("initA.ora", "memory_target=90G\nsga_target=80G\n");
    clear("B05", &[amm, ("sysctl.conf", &pool)]);
    let on = |tree: host::Tree| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = given(&[one]);
        judge(&evidence).of("B05").cloned().collect::<Vec<_>>()
    };
    let large = machine().line("/hugewise/page_size", 16_384);
    let found = on(large.clone().line("/proc/sys/kernel/shmall", 524_288));
    assert!(
        found[0]
            .consequence
            .contains("takes 1966080 (30G), and kernel.shmall allows 524288 (8G)"),
        "{found:?}"
    );
    assert_eq!(on(large.clone().line("/proc/sys/kernel/shmall", 1_966_080)), []);
    // The instance that runs has its segments.
    let runs = process(70, "ora_pmon_A")
        .area(anonymous(100))
        .on(large.clone())
        .file("/proc/70/cmdline", "ora_pmon_A\0");
    assert_eq!(on(runs.line("/proc/sys/kernel/shmall", 524_288)), []);
}

const SPEC: &str =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources:\n";

#[test]
fn pods_that_kubernetes_does_not_take() {
    let pod = |resources: &str, rest: &str| format!("{SPEC}      {resources}\n{rest}");
    let volume = "    volumeMounts: [{name: h}]\n  volumes: [{name: h, emptyDir: {medium: HugePages-2Mi}}]\n";
    let good = pod("limits: {memory: 1Gi, hugepages-2Mi: 64Mi}", volume);
    clear("C06", &[("p.yaml", &good)]);
    clear("C04", &[("p.yaml", &good)]);
    for bad in [
        pod(
            "{limits: {memory: 1Gi, hugepages-2Mi: 64Mi}, requests: {hugepages-2Mi: 32Mi}}",
            "",
        ),
        pod("requests: {memory: 1Gi, hugepages-2Mi: 64Mi}", ""),
        pod("limits: {hugepages-2Mi: 64Mi}", ""),
        pod("limits: {memory: 1Gi, hugepages-2Mi: 3Mi}", ""),
        pod("limits: {memory: 1Gi}", volume),
        pod("limits: {memory: 1Gi, hugepages-1Gi: 1Gi}", volume),
    ] {
        assert_eq!(found("C06", &[("p.yaml", &bad)]).severity, Severity::Error, "{bad}");
    }
    found(
        "C04",
        &[("p.yaml", &pod("limits: {memory: 1Gi, hugepages-2Mi: 64Mi}", ""))],
    );
    clear("C06", &[("p.yaml", &good), POOL]);
    assert_eq!(found("C06", &[("p.yaml", &good), NO_POOL]).severity, Severity::Warning);
}

#[test]
fn guests_of_every_sort() {
    let domain = |memory: u64, backing: &str| {
        format!(
            "<domain><name>db</name><memory unit='MiB'>{memory}</memory><memoryBacking>{backing}</memoryBacking></domain>"
        )
    };
    let pages = "<hugepages><page size='2' unit='M'/></hugepages>";
    found("G02", &[("a.xml", &domain(8192, ""))]);
    clear("G02", &[("a.xml", &domain(8192, pages))]);
    found("G04", &[("a.xml", &domain(8192, pages)), POOL]);
    clear("G04", &[("a.xml", &domain(1024, pages)), POOL]);
    found("G05", &[("a.xml", &domain(1025, pages))]);
    clear("G05", &[("a.xml", &domain(1024, pages))]);
    let of_default = domain(8191, "<hugepages/>");
    let boot = |line| [("a.xml", &*of_default), ("cmdline", line)];
    found("G05", &boot("default_hugepagesz=2M hugepages=8192"));
    clear("G05", &boot("default_hugepagesz=64K hugepages=262144"));
    let qemu = |more: &str| {
        format!("qemu-system-x86_64 -m 1G -object memory-backend-memfd,id=m,size=1G,hugetlb=on,hugetlbsize=2M{more}\n")
    };
    found("G03", &[("run.sh", &qemu(",reserve=off"))]);
    clear("G03", &[("run.sh", &qemu(",reserve=off,prealloc=on"))]);
    clear("G03", &[("run.sh", &qemu(""))]);
    let unused = found("G02", &[("run.sh", &qemu(""))]);
    assert!(
        unused
            .consequence
            .contains("Only a command of the monitor (device_add) can use it later"),
        "{unused:?}"
    );
    clear("G02", &[("run.sh", &qemu(" -machine memory-backend=m"))]);
    found("G04", &[("run.sh", &qemu(" -m 2G -machine memory-backend=m"))]);
}

#[test]
fn vmware_settings() {
    let vmx =
        |min: u32| format!("memSize = \"65536\"\nsched.mem.lpage.enable1GPage = \"TRUE\"\nsched.mem.min = \"{min}\"\n");
    found("G06", &[("db.vmx", &vmx(1024))]);
    clear("G06", &[("db.vmx", &vmx(65536))]);
    clear("G06", &[("db.vmx", "memSize = \"4096\"\n")]);
    unjudged(
        "G06",
        &[("db.vmx", "sched.mem.lpage.enable1GPage = \"TRUE\"\n")],
        "memSize",
    );
    unjudged("G06", &[POOL], "vmware");
    found("G07", &[("esx.txt", "/Mem/AllocGuestLargePage = 0\n")]);
    found(
        "G07",
        &[("db.vmx", "monitor_control.disable_mmu_largepages = \"TRUE\"\n")],
    );
    clear("G07", &[("esx.txt", "Mem.AllocGuestLargePage = 1\n")]);
}

/// WSL without systemd reads no file of sysctl.d: a larger pool is not asked for there.
#[test]
fn a_shortage_is_mended_where_something_reads_it() {
    let fixes = |release: &str| {
        let tree = pool(machine(), "2048kB", 100, 100, 0)
            .line("/proc/sys/kernel/osrelease", release)
            .line("/proc/1/comm", "init");
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = given(&[("start.sh", "java -XX:+UseLargePages -Xmx1g Main\n")]);
        let diagnosis = judge(&evidence);
        let short = diagnosis.of("E01").flat_map(|finding| finding.fix.clone());
        short.collect::<Vec<_>>().join("\n")
    };
    assert!(fixes("6.12.10").contains("in /etc/sysctl.d"), "{}", fixes("6.12.10"));
    let wsl = fixes("6.6.87.2-microsoft-standard-WSL2");
    assert!(
        wsl.contains("kernelCommandLine=sysctl.vm.nr_hugepages=") && !wsl.contains("/etc/sysctl.d"),
        "{wsl}"
    );
}

#[test]
fn files_are_held_against_the_machine_that_is_given_too() {
    let files = given(&[("start.sh", "java -XX:+UseLargePages -Xmx1g Main\n")]);
    let on = |pages| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", pages, pages, 0)));
        evidence.files = files.clone();
        judge(&evidence)
    };
    let short = on(100);
    let finding = short.of("E01").next().expect("a finding");
    assert!(
        finding
            .evidence
            .iter()
            .any(|proof| proof.source.ends_with("nr_hugepages")),
        "{finding:?}"
    );
    assert_eq!(short.of("A02").count(), 0, "the pool waits for the program of the file");
    assert_eq!(
        on(600).of("E01").count(),
        1,
        "the heap fits, code cache and tables do not"
    );
    assert_eq!(on(650).of("E01").count(), 0);
}

/// Any other file leaves a pool as it is.
#[test]
fn a_pool_in_use_beside_a_file_of_other_settings() {
    let of_1g = |free| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "1048576kB", 4, free, 0)));
        evidence.files = given(&[("sysctl.conf", "vm.swappiness = 1\n")]);
        judge(&evidence).of("A05").count()
    };
    assert_eq!((of_1g(0), of_1g(4)), (0, 1));
}

#[test]
fn a_pool_is_not_all_written_by_a_script_that_leaves_less() {
    let on = |pages| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", 512, 512, 0)));
        let text = format!("echo {pages} > /proc/sys/vm/nr_hugepages\n");
        evidence.files = given(&[("hp.sh", &text)]);
        judge(&evidence).of("A02").count()
    };
    assert_eq!((on(8), on(512)), (1, 0));
}

/// ZGC has one page size; the default size decides before JDK 18.
#[test]
fn zgc_and_a_page_size_that_is_not_its_own() {
    let java = |options: &str| format!("java -XX:+UseZGC -XX:+UseLargePages -Xmx1g {options} Main\n");
    let (plain, large) = (java(""), java("-XX:LargePageSizeInBytes=1g"));
    let boot = (
        "cmdline",
        "root=/dev/sda default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=700\n",
    );
    let finding = found("E03", &[("start.sh", &large)]);
    assert_eq!(finding.severity, Severity::Error);
    assert!(
        finding.consequence.contains("ZGC takes huge pages of 2M only"),
        "{finding:?}"
    );
    let finding = found("E03", &[("start.sh", &plain), boot]);
    assert!(finding.consequence.contains("JDK 17 and earlier"), "{finding:?}");
    // The heap is counted against its own pool.
    clear("E01", &[("start.sh", &plain), boot]);
    found(
        "E01",
        &[
            ("start.sh", &plain),
            (
                "cmdline",
                "root=/dev/sda default_hugepagesz=1G hugepagesz=1G hugepages=4\n",
            ),
        ],
    );
    clear("E03", &[("start.sh", &plain), POOL]);
    let g1 = "java -XX:+UseLargePages -Xmx1g Main\n";
    clear("E03", &[("start.sh", g1), boot]);
}

#[test]
fn b02_a_device_that_libvirt_does_not_know() {
    let domain = |more: &str, device: &str| {
        format!(
            "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>vm</name><memory unit='GiB'>8</memory>{more}<qemu:commandline><qemu:arg value='-device'/><qemu:arg value='{device}'/></qemu:commandline></domain>\n"
        )
    };
    let vfio = "vfio-pci,host=01:00.0";
    let finding = found("B02", &[("vm.xml", &domain("", vfio))]);
    assert!(finding.fix[1].contains(">10</hard_limit>"), "{finding:?}");
    let limit = "<memtune><hard_limit unit='GiB'>10</hard_limit></memtune>";
    let known = "<devices><hostdev mode='subsystem' type='pci'/></devices>";
    for (more, device) in [
        (limit, vfio),
        ("<memoryBacking><locked/></memoryBacking>", vfio),
        (known, vfio),
        ("", "virtio-rng-pci"),
    ] {
        clear("B02", &[("vm.xml", &domain(more, device))]);
    }
    let service = (
        "libvirtd.service",
        "[Service]\nLimitMEMLOCK=infinity\nExecStart=/usr/sbin/libvirtd\n",
    );
    clear("B02", &[("vm.xml", &domain("", vfio)), service]);
}

#[test]
fn b02_what_the_program_of_a_unit_locks() {
    let unit = |lines: &str| format!("[Service]\n{lines}\n");
    let guest = "ExecStart=/usr/bin/cloud-hypervisor --memory size=4G --device path=/sys/bus/pci/devices/0000:01:00.0/";
    let low = unit(&format!("User=clh\nLimitMEMLOCK=4194304\n{guest}"));
    let finding = found("B02", &[("vm.service", &low)]);
    assert!(
        finding.consequence.contains("locks 4G or more") && finding.severity == Severity::Error,
        "{finding:?}"
    );
    assert_eq!(finding.fix.len(), 3, "no count of KiB: {finding:?}");
    let qemu = "ExecStart=-/usr/bin/qemu-system-x86_64 -m 2G -device vfio-pci,host=01:00.0";
    let not_set = found("B02", &[("vm.service", &unit(&format!("User=vm\n{qemu}")))]);
    assert!(not_set.consequence.contains("is not set"), "{not_set:?}");
    // An IOMMU of the guest translates nothing at start.
    let behind = unit(&format!("User=vm\nLimitMEMLOCK=64M\n{qemu} -device intel-iommu"));
    assert!(
        found("B02", &[("vm.service", &behind)])
            .consequence
            .contains("locks 2G or more")
    );
    let crosvm = "ExecStart=/usr/bin/crosvm run --mem 2048 --vfio /sys/bus/pci/devices/0000:01:00.0";
    found(
        "B02",
        &[("vm.service", &unit(&format!("User=vm\nLimitMEMLOCK=1G\n{crosvm}")))],
    );
    for lines in [
        format!("LimitMEMLOCK=4194304\n{guest}"),
        format!("User=clh\nLimitMEMLOCK=5G\n{guest}"),
        format!("User=clh\nLimitMEMLOCK=4M\nAmbientCapabilities=CAP_NET_ADMIN CAP_IPC_LOCK\n{guest}"),
        format!("User=clh\nLimitMEMLOCK=4M\n{guest},iommu=on"),
        "User=vm\nLimitMEMLOCK=4M\nExecStart=/usr/bin/qemu-system-x86_64 -m 2G".to_owned(),
        "User=db\nLimitMEMLOCK=4M\nExecStart=/usr/bin/own-database".to_owned(),
    ] {
        clear("B02", &[("vm.service", &unit(&lines))]);
    }
}

/// A limit as large as what is known is too low in each kind of file.
#[test]
fn b02_memcached_locks_its_items() {
    let memcached = |limit: &str, items: u64| {
        let command = format!("/usr/bin/memcached -k -m {items}");
        let service = format!("services:\n  cache:\n    image: memcached:1\n    command: {command}\n");
        [
            (
                "vm.service",
                format!("[Service]\nUser=cache\nLimitMEMLOCK={limit}M\nExecStart={command}\n"),
            ),
            (
                "compose.yaml",
                format!("{service}    ulimits: {{memlock: {limit}000000}}\n"),
            ),
        ]
    };
    for (name, text) in memcached("64", 4096).iter().chain(&memcached("64", 64)) {
        found("B02", &[(*name, text)]);
    }
    for (name, text) in &memcached("64", 32) {
        clear("B02", &[(*name, text)]);
    }
}

#[test]
fn b02_varnish_locks_its_log() {
    let varnish = |lines: &str| format!("[Service]\n{lines}\nExecStart=/usr/sbin/varnishd -a :80\n");
    let log = found("B02", &[("varnish.service", &varnish("LimitMEMLOCK=82000"))]);
    assert!(
        log.fix[3].starts_with("or LimitMEMLOCK=82000K: a number alone counts bytes")
            && log.severity == Severity::Warning,
        "{log:?}"
    );
    for lines in [
        varnish("LimitMEMLOCK=82M"),
        varnish(""),
        varnish("LimitMEMLOCK=64K").replace(":80", ":80 -l 32k"),
    ] {
        clear("B02", &[("varnish.service", &lines)]);
    }
}

#[test]
fn containers_of_a_compose_file() {
    let compose = |lines: &str| {
        format!(
            "services:\n  db:\n    image: mariadb:lts\n{lines}    command: --large-pages --innodb-buffer-pool-size=1G\n"
        )
    };
    let low = compose("    ulimits: {memlock: 262144}\n");
    let finding = found("B02", &[("compose.yaml", &low)]);
    assert!(finding.consequence.contains("db may lock 256K"), "{finding:?}");
    let finding = found(
        "F05",
        &[("compose.yaml", &low), ("sysctl.conf", "vm.nr_hugepages = 100\n")],
    );
    assert!(finding.consequence.contains("646 pages of 2M"), "{finding:?}");
    for lines in [
        "",
        "    ulimits: {memlock: -1}\n",
        "    ulimits: {memlock: 67108864}\n",
        "    cap_add: [IPC_LOCK]\n    ulimits: {memlock: 262144}\n",
    ] {
        clear("B02", &[("compose.yaml", &compose(lines))]);
    }
    let locked = "services:\n  es:\n    image: elasticsearch:8.15.0\n    environment: [bootstrap.memory_lock=true]\n    ulimits:\n      memlock: {soft: 65536, hard: 65536}\n";
    assert!(
        found("B02", &[("compose.yaml", locked)])
            .consequence
            .contains("does not start")
    );
}

/// Pages that a program of another kind holds are not there for one that a file starts; those of its own kind may be its own.
#[test]
fn a_file_s_program_gets_the_pages_that_are_free() {
    let unit = given(&[(
        "fwd.service",
        "[Service]\nExecStart=/usr/bin/testpmd -l 0-3 --socket-mem 512 -- -i\n",
    )]);
    let java = given(&[(
        "start.sh",
        "java -XX:+UseLargePages -XX:ReservedCodeCacheSize=64m -Xmx512m Main\n",
    )]);
    let beside = |files: &Given, holder: &str| {
        let tree = pool(machine(), "2048kB", 600, 100, 0);
        let tree = process(9, holder).arg("-D").area(hugetlb(1000, 2048)).on(tree);
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = files.clone();
        judge(&evidence)
    };
    let short = beside(&unit, "postgres");
    let finding = short.of("A10").next().expect("a finding");
    let says = "needs at least 256 pages of 2M on node 0, and the pool has 600 there, 100 of them free";
    assert!(finding.consequence.contains(says), "{finding:?}");
    assert!(finding.fix[0].contains("add 156 pages of 2M on node 0"), "{finding:?}");
    for holder in ["testpmd", "a-program-of-its-own"] {
        assert_eq!(beside(&unit, holder).of("A10").count(), 0, "{holder}");
    }
    let short = beside(&java, "postgres");
    let finding = short.of("E01").next().expect("a finding");
    assert!(
        finding.consequence.contains("the pool has 600, 100 of them free"),
        "{finding:?}"
    );
    assert_eq!(beside(&java, "java").of("E01").count(), 0);
}

/// The kernel shows to every user how many pages are free, but not always whose the others are.
#[test]
fn pages_in_use_are_not_free_where_processes_cannot_be_read() {
    let script = "qemu-system-x86_64 -m 800M -object memory-backend-memfd,id=m,size=800M,hugetlb=on,prealloc=on -machine q35,memory-backend=m\n";
    let short = |tree| {
        let evidence = Evidence::gather(&Source::from_tree("test", tree));
        let diagnosis = judge(&evidence.with_files(given(&[("second.sh", script)])));
        diagnosis.of("G04").cloned().collect::<Vec<_>>()
    };
    let guest = process(9, "qemu-system-x86").arg("-name").arg("first");
    let two = pool(pool(machine(), "2048kB", 512, 256, 0), "1048576kB", 0, 0, 0);
    let guest = guest.area(hugetlb(512, 2048)).on(two);
    let unseen = |free, reserved| pool(machine(), "2048kB", 512, free, reserved).without("/proc/1");

    for tree in [unseen(256, 0), unseen(512, 256)] {
        let found = short(tree);
        let [finding] = found.as_slice() else {
            panic!("{found:?}")
        };
        let says = "and the pool has 512, 256 of them free; the others may be its own if it runs already";
        assert!(finding.consequence.contains(says), "{finding:?}");
        assert_eq!(finding.confidence, Confidence::Low);
    }
    // Another guest by its name, of which its status shows the pages to every user.
    for tree in [guest.clone().denied("/proc/9/smaps"), guest] {
        assert_eq!(short(tree)[0].confidence, Confidence::Medium);
    }
    assert_eq!(short(unseen(400, 0)), []);
}

/// Of what files bind to nodes, those that the machine lacks are named, and no finding asks for more pages instead.
#[test]
fn a_node_that_the_machine_lacks_is_named_whatever_binds_memory_to_it() {
    let named = |path: &str, text: &str| {
        let tree = pool(machine(), "1048576kB", 8, 8, 0).line("/sys/devices/system/node/online", "0");
        let tree = tree.line("/sys/devices/system/node/node0/cpulist", "0-3");
        let evidence = Evidence::gather(&Source::from_tree("test", tree));
        let diagnosis = judge(&evidence.with_files(given(&[(path, text)])));
        assert_eq!(
            (diagnosis.of("G04").count(), diagnosis.of("A10").count()),
            (0, 0),
            "{path}: {diagnosis:?}"
        );
        let of_node = |finding: &&Finding| format!("{finding:?}").contains("this machine has no NUMA node 5");
        diagnosis.of("I01").filter(of_node).count()
    };
    let domain = |node: &str| {
        format!(
            "<domain type='kvm'><name>n</name><memory unit='GiB'>4</memory><memoryBacking><hugepages><page size='1' unit='G'/></hugepages>\
             <source type='memfd'/></memoryBacking><numatune><memory mode='strict' nodeset='{node}'/></numatune><vcpu>4</vcpu></domain>\n"
        )
    };
    let qemu = "qemu-system-x86_64 -m 1G -object memory-backend-memfd,id=m,size=1G,hugetlb=on,hugetlbsize=1G,host-nodes=NODE,policy=bind -machine memory-backend=m\n";
    let zone = "cloud-hypervisor --memory size=0 --memory-zone id=z,size=1G,hugepages=on,hugepage_size=1G,host_numa_node=NODE,prefault=on\n";
    let proxmox = "memory: 1024\nhugepages: 1024\nnuma: 1\nnuma0: cpus=0-1,hostnodes=NODE,memory=1024,policy=bind\ncores: 2\nname: p\n";
    let nova = "[DEFAULT]\nreserved_huge_pages = node:NODE,size:1GB,count:4\n";
    for node in ["0", "5"] {
        let expected = usize::from(node == "5");
        assert_eq!(named("n.xml", &domain(node)), expected);
        for (path, text) in [
            ("run.sh", qemu),
            ("run.sh", zone),
            ("106.conf", proxmox),
            ("nova.conf", nova),
        ] {
            assert_eq!(named(path, &text.replace("NODE", node)), expected, "{text}");
        }
    }
    for (list, expected) in [("1024", 0), ("0,0,0,0,0,1024", 1)] {
        let dpdk = format!("dpdk-testpmd -l 0-1 --socket-mem {list} -- -i\n");
        let ovs = format!("ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem=\"{list}\"\n");
        assert_eq!(
            (named("fwd.sh", &dpdk), named("ovs.sh", &ovs)),
            (expected, expected),
            "{list}"
        );
    }
}

/// A directory for pages that is none on the machine.
#[test]
fn a_directory_for_pages_is_a_hugetlbfs_of_the_machine() {
    let found = |id: &str, text: &str| {
        let evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", 4096, 4096, 0)));
        let diagnosis = judge(&evidence.with_files(given(&[("run.sh", text)])));
        let of_mount = |finding: &&Finding| finding.consequence.contains("on no hugetlbfs of this machine");
        diagnosis.of(id).find(of_mount).cloned()
    };
    let dpdk = |directory: &str| format!("dpdk-testpmd -l 0-3 --socket-mem 512 --huge-dir {directory} -- -i\n");
    let ovs = |directory: &str| {
        format!(
            "ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem=\"512\" other_config:dpdk-hugepage-dir={directory}\n"
        )
    };
    let qemu = |directory: &str| format!("qemu-system-x86_64 -accel kvm -m 4096M -mem-path {directory} -smp 4\n");
    for (id, text) in [("A10", &dpdk as &dyn Fn(&str) -> String), ("A10", &ovs), ("G04", &qemu)] {
        let finding = found(id, &text("/mnt/huge_1G")).unwrap_or_else(|| panic!("{}", text("/mnt/huge_1G")));
        let fix = "mkdir -p /mnt/huge_1G && mount -t hugetlbfs -o pagesize=1G hugetlbfs /mnt/huge_1G";
        assert!(finding.fix.iter().any(|step| step.contains(fix)), "{finding:?}");
        assert_eq!(found(id, &text("/dev/hugepages")), None);
        let mounts = format!(
            "mount -t hugetlbfs -o pagesize=1G none /mnt/huge_1G\n{}",
            text("/mnt/huge_1G")
        );
        assert_eq!(found(id, &mounts), None);
    }
    assert_eq!(found("G04", &qemu("/mnt/pmem0")), None, "an ordinary file may be meant");
    assert_eq!(found("A10", &dpdk("/mnt/huge --in-memory")), None);
}

/// Nothing of the machine's mounts shows what a container or a unit of its own view has at a path.
#[test]
fn a_directory_for_pages_may_be_of_another_view() {
    let is_found = |lines: &str| {
        let evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", 4096, 4096, 0)));
        let diagnosis = judge(&evidence.with_files(given(&[("a.service", &format!("[Service]\n{lines}\n"))])));
        let is_it = |finding: &Finding| finding.consequence.contains("on no hugetlbfs of this machine");
        diagnosis.of("A10").any(is_it)
    };
    let dpdk = "dpdk-testpmd -l 0-3 --socket-mem 512 --huge-dir /mnt/huge";
    let own = format!("ExecStart=/usr/bin/{dpdk}");
    assert!(is_found(&own));
    assert!(is_found(&format!("BindPaths=/opt/data:/mnt/data\n{own}")));
    for lines in [
        format!("ExecStart=/usr/bin/docker run --privileged -v /dev/hugepages:/mnt/huge dpdk {dpdk}"),
        format!("BindPaths=/dev/hugepages:/mnt/huge\n{own}"),
        format!("RequiresMountsFor=/mnt/huge\n{own}"),
    ] {
        assert!(!is_found(&lines), "{lines}");
    }
}

/// VPP takes no notice of its socket-mem since 19.04, wherever it stands.
#[test]
fn the_memory_of_vpp_is_that_of_its_old_releases() {
    let command = "[Service]\nExecStart=/usr/bin/vpp unix { nodaemon } dpdk { socket-mem 1024,1024 }\n";
    let file = "unix { nodaemon }\ndpdk {\n socket-mem 1024,1024\n}\n";
    for given_file in [("vpp.service", command), ("startup.conf", file)] {
        let evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", 64, 64, 0)));
        let diagnosis = judge(&evidence.with_files(given(&[given_file])));
        let all = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Info);
        assert_eq!(all.count(), 0, "{given_file:?}: {:?}", diagnosis.findings);
        assert!(
            diagnosis
                .of("I01")
                .any(|finding| finding.consequence.contains("an older VPP"))
        );
    }
}

/// A server on another port is another one, and of several JVMs at most one is that of the file.
#[test]
fn what_others_of_its_kind_hold_is_not_there_for_a_file_s_program() {
    let on = |tree, files: &Given| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = files.clone();
        judge(&evidence)
    };
    let second = given(&[(
        "my.cnf",
        "[mysqld]\nport=3307\nlarge-pages\ninnodb_buffer_pool_size=256M\n",
    )]);
    let server = |port: &str| {
        let server = process(9, "mysqld").arg(port).area(hugetlb(1000, 2048));
        server.on(pool(machine(), "2048kB", 600, 100, 0))
    };
    let short = on(server("--port=3306"), &second);
    let finding = short.of("F05").next().expect("a finding");
    assert!(
        finding.consequence.contains("the pool has 600, 100 of them free"),
        "{finding:?}"
    );
    assert_eq!(on(server("--port=3307"), &second).of("F05").count(), 0);
    let java = given(&[("start.sh", "java -XX:+UseLargePages -Xmx2g Main\n")]);
    let jvm = |pid| process(pid, "java").area(hugetlb(1400, 2048));
    let one = jvm(9).on(pool(machine(), "2048kB", 1800, 1100, 0));
    let two = jvm(10).on(jvm(9).on(pool(machine(), "2048kB", 1800, 400, 0)));
    assert_eq!(on(one, &java).of("E01").count(), 0);
    assert_eq!(on(two, &java).of("E01").count(), 1);
}

/// All processes of a server map its one segment.
#[test]
fn a_segment_that_processes_share_is_held_once() {
    let mut tree = pool(machine(), "2048kB", 1000, 100, 0);
    tree = process(9, "java").area(hugetlb(1600, 2048)).on(tree);
    for pid in 20..30 {
        let backend = process(pid, "postgres").area(hugetlb(200, 2048).perms("rw-s"));
        tree = backend.on(tree);
    }
    let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
    evidence.files = given(&[("postgresql.conf", "huge_pages = on\nshared_buffers = 1GB\n")]);
    let diagnosis = judge(&evidence);
    let finding = diagnosis.of("F02").next().expect("a finding");
    assert!(finding.consequence.contains("the pool has 1000"), "{finding:?}");
}

/// Guests that run are those of a file by their whole name; a sandbox of Kata Containers has an id for one.
#[test]
fn a_guest_that_runs_is_the_file_s_by_its_name() {
    let domain = "<domain type='kvm'><name>db</name><memory unit='GiB'>4</memory><memoryBacking><hugepages/></memoryBacking></domain>\n";
    let kata = "[hypervisor.qemu]\nenable_hugepages = true\ndefault_memory = 4096\n";
    let is_short = |file: (&str, &str), name: &str| {
        let guest = process(9, "qemu-system-x86").arg("-name").arg(name);
        let guest = guest.area(hugetlb(4096, 2048)).cgroup("/machine.slice/a.scope");
        let tree = guest.on(pool(machine(), "2048kB", 2500, 452, 0));
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = given(&[file]);
        let diagnosis = judge(&evidence);
        let mut all = diagnosis.of("G04");
        all.any(|finding| finding.consequence.contains("the pool has 2500, 452 of them free"))
    };
    let (domain, kata) = (("db.xml", domain), ("configuration-qemu.toml", kata));
    assert!(is_short(domain, "guest=staging_db") && is_short(kata, "guest=db"));
    assert!(!is_short(domain, "guest=db,debug-threads=on") && !is_short(kata, "sandbox-0a1b,debug-threads=on"));
}

/// A guest's pages are a file in a mount of their size.
#[test]
fn a_libvirt_guest_without_a_mount_of_its_page_size() {
    let guest = |source: &str| {
        format!(
            "<domain type='kvm'><name>vm</name><memory unit='GiB'>4</memory><memoryBacking><hugepages><page size='1' unit='G'/></hugepages>{source}</memoryBacking></domain>\n"
        )
    };
    let on = |xml: &str, mounts: &str| {
        let tree = pool(machine(), "1048576kB", 4, 4, 0).file("/proc/self/mounts", mounts);
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = given(&[("vm.xml", xml)]);
        judge(&evidence)
    };
    let two = "hugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n";
    let short = on(&guest(""), two);
    let finding = short.of("G04").next().expect("a finding");
    assert!(
        finding.consequence.contains("usable hugetlbfs mount for 1048576 KiB"),
        "{finding:?}"
    );
    assert_eq!(
        (short.of("A05").count(), short.of("A02").count()),
        (0, 0),
        "the pool is the guest's"
    );
    assert_eq!(on(&guest("<source type='memfd'/>"), two).of("G04").count(), 0);
    let both = format!("{two}none /mnt/huge1G hugetlbfs rw,pagesize=1024M 0 0\n");
    assert_eq!(on(&guest(""), &both).of("G04").count(), 0);
}

#[test]
fn what_a_unit_starts_is_judged_as_a_command_is() {
    let unit = |exec: &str| format!("[Service]\nEnvironmentFile=-/etc/default/app\n{exec}\n");
    let java =
        "Environment=\"JAVA_TOOL_OPTIONS=-XX:+UseLargePages\"\nExecStart=/usr/bin/java -Xmx4g \\\n  -jar app.jar";
    let finding = found("E01", &[("app.service", &unit(java)), POOL]);
    assert!(finding.consequence.contains("needs at least 2208 pages"), "{finding:?}");
    assert!(finding.evidence[0].source.starts_with("app.service:4"), "{finding:?}");
    clear(
        "E01",
        &[
            ("app.service", &unit("ExecStart=/usr/bin/java -Xmx4g -jar app.jar")),
            POOL,
        ],
    );
    // A script hands on what a file of variables holds.
    let file = ("etc/default/app", "JAVA_OPTS=\"-XX:+UseLargePages -Xmx4g\"\n");
    found(
        "E01",
        &[("app.service", &unit("ExecStart=/opt/app/bin/run")), file, POOL],
    );
    found("E01", &[file, POOL]);
    let postgres = unit("ExecStart=/usr/lib/postgresql/15/bin/postgres -D /data -c huge_pages=on");
    let conf = ("postgresql.conf", "shared_buffers = 8GB\n");
    let both = found("F02", &[("pg.service", &postgres), conf, POOL]);
    assert!(both.consequence.contains("needs at least 4200 pages"), "{both:?}");
    let mysql = unit("ExecStart=/usr/sbin/mariadbd --large-pages --innodb-buffer-pool-size=1G");
    let short = found("F05", &[("db.service", &mysql), POOL]);
    assert!(short.consequence.contains("needs at least 646 pages"), "{short:?}");
}

#[test]
fn programs_in_pods_have_the_pages_of_their_pod() {
    let pod = |inside: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: c\n{inside}\n    \
             volumeMounts: [{{name: h}}]\n  volumes: [{{name: h, emptyDir: {{medium: HugePages-2Mi}}}}]\n"
        )
    };
    let resources = |mi: u64| format!("    resources: {{limits: {{memory: 8Gi, hugepages-2Mi: {mi}Mi}}}}");
    let postgres = |mi| pod(&format!("    image: docker.io/library/postgres:16\n{}", resources(mi)));
    let conf = ("postgresql.conf", "shared_buffers = 1GB\n");
    let many = ("sysctl.conf", "vm.nr_hugepages = 4096\n");
    let finding = found("C06", &[("p.yaml", &postgres(1024)), conf, many]);
    assert!(
        finding.consequence.contains(" pages of 2M, and its limit is 512"),
        "{finding:?}"
    );
    assert_eq!(finding.severity, Severity::Error);
    clear("C06", &[("p.yaml", &postgres(1200)), conf, many]);
    clear("F01", &[("p.yaml", &postgres(1024)), conf, POOL]);
    clear(
        "C06",
        &[
            ("p.yaml", &postgres(1024)),
            ("postgresql.conf", "shared_buffers = 1GB\nhuge_pages = off\n"),
            many,
        ],
    );
    let java = |options: &str, mi| {
        let variable = format!("    env: [{{name: JAVA_TOOL_OPTIONS, value: '{options}'}}]");
        pod(&format!("    image: tomcat\n{variable}\n{}", resources(mi)))
    };
    let short = found("C06", &[("p.yaml", &java("-XX:+UseLargePages -Xmx4g", 4096))]);
    assert!(
        short
            .consequence
            .contains("needs 2208 pages of 2M, and its limit is 2048"),
        "{short:?}"
    );
    clear("C06", &[("p.yaml", &java("-XX:+UseLargePages -Xmx4g", 4500))]);
    let other = pod(
        "    env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:+UseLargePages -Xmx1g'}]\n    \
         resources: {limits: {memory: 8Gi, hugepages-1Gi: 2Gi}}",
    )
    .replace("HugePages-2Mi", "HugePages-1Gi");
    let fix = found("C06", &[("p.yaml", &other)]).fix.join("\n");
    assert!(fix.contains("-XX:LargePageSizeInBytes=1G"), "{fix}");
    let cluster = "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: pg}\nspec:\n  postgresql:\n    parameters:\n      \
                   shared_buffers: 4GB\n      huge_pages: 'on'\n  resources:\n    limits: {memory: 8Gi, hugepages-2Mi: 4Gi}\n";
    let short = found("C06", &[("cluster.yaml", cluster)]);
    assert!(short.consequence.contains("it does not start"), "{short:?}");
    clear("C06", &[("cluster.yaml", &cluster.replace("4Gi}", "5Gi}"))]);
    // A template of pods by another name (elastic/cloud-on-k8s#1601).
    let elastic = "apiVersion: elasticsearch.k8s.elastic.co/v1\nkind: Elasticsearch\nmetadata: {name: es}\nspec:\n  nodeSets:\n  - name: data\n    \
                   podTemplate:\n      spec:\n        containers:\n        - name: elasticsearch\n          \
                   env: [{name: ES_JAVA_OPTS, value: '-Xmx4g -XX:+UseLargePages'}]\n          resources: {limits: {memory: 8Gi, cpu: 4}}\n";
    let asks = found("C06", &[("es.yaml", elastic), many]);
    assert!(asks.consequence.contains("elasticsearch of the pod es"), "{asks:?}");
}

#[test]
fn i01_an_option_that_a_jvm_refuses() {
    let options = ("jvm.options", "-Xmx2g\n-ea\n-XX:+UseLargePages # pool\n");
    let unit = (
        "a.service",
        "[Service]\nUser=a\nEnvironment=\"JAVA_TOOL_OPTIONS=-cp a\"\nExecStart=java -Xmx2g -jar a.jar\n",
    );
    for (file, place, fix) in [
        (options, "jvm.options:3", "start the JVM anew"),
        (unit, "a.service:3", "daemon-reload"),
    ] {
        let found = found("I01", &[file]);
        assert_eq!(found.evidence[0].source, place);
        assert!(found.fix[0].contains(fix), "{:?}", found.fix);
        assert!(format!("{found:?}").contains("specs/man/java.html"), "{found:?}");
    }
}

#[test]
fn what_a_program_refuses_of_its_file_is_a_finding_with_its_line() {
    let finding = |file: (&str, &str)| {
        let diagnosis = judged(&[file]);
        let found = diagnosis.of("I01").next().cloned();
        found.map(|finding| (finding.consequence, finding.evidence[0].source.clone()))
    };
    let place = |file| finding(file).map(|(_, place)| place);
    assert_eq!(
        place(("sysctl.conf", "vm.nr_hugepages = 8G\n")).as_deref(),
        Some("sysctl.conf:1")
    );
    assert_eq!(
        place(("postgresql.conf", "\nshared_buffers = 8gb\n")).as_deref(),
        Some("postgresql.conf:2")
    );
    assert_eq!(
        place(("db.service", "[Unit]\nLimitMEMLOCK=1G\n")).as_deref(),
        Some("db.service:2")
    );
    for options in [
        "-XX:+UseLargePages -Xmx8gb",
        "-XX:+UseHugePages -Xmx8g",
        "-XX:LargePageSizeInBytes=2MB",
    ] {
        let text = format!("java {options} Main\n");
        assert!(
            finding(("start.sh", &text)).is_some_and(|(text, _)| text.contains("does not start")),
            "{options}"
        );
    }
    assert_eq!(
        finding((
            "start.sh",
            "java -XX:+UseLargePages -Xmx8g -XX:LargePageSizeInBytes=2m Main\n"
        )),
        None
    );
    assert_eq!(finding(("sysctl.conf", "vm.nr_hugepages = 4096 # pages\n")), None);
}

#[test]
fn proxmox_fills_pools_by_itself() {
    let machine_of = |text: &str| ("qemu-server/100.conf", text.to_owned());
    let conf = machine_of("memory: 8192\nhugepages: 2\nname: db\n");
    let refused = found("G04", &[(conf.0, &conf.1)]);
    assert!(
        refused
            .consequence
            .contains("Proxmox VE refuses the definition of db: numa needs"),
        "{refused:?}"
    );
    let conf = machine_of("memory: 8192\nhugepages: 2\nnuma: 1\nname: db\n");
    clear("G04", &[(conf.0, &conf.1), NO_POOL]);
    let conf = machine_of("memory: 6144\nsockets: 4\nhugepages: 1024\nnuma: 1\n");
    let odd = found("G05", &[(conf.0, &conf.1)]);
    assert!(odd.fix[0].starts_with("memory: 8192 "), "{odd:?}");
    let one_g = given(&[("qemu-server/101.conf", "memory: 8192\nhugepages: 1024\nnuma: 1\n")]);
    let on = |tree| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        evidence.files = one_g.clone();
        judge(&evidence)
    };
    let diagnosis = on(pool(machine(), "1048576kB", 4, 4, 0));
    let finding = diagnosis.of("G04").next().expect("a finding");
    assert!(
        finding.consequence.contains("needs 8 pages of 1G") && finding.consequence.contains("4 are free"),
        "{finding:?}"
    );
    // A guest that runs has its pages.
    let runs = |number: &str| {
        let guest = process(9, "kvm").arg("-id").arg(number).area(hugetlb(8 << 10, 1 << 20));
        on(guest.on(pool(machine(), "1048576kB", 8, 0, 0))).of("G04").count()
    };
    assert_eq!((runs("101"), runs("102")), (0, 1));
}

#[test]
fn vmware_machines_that_lose_their_nodes_or_do_not_power_on() {
    found(
        "G06",
        &[(
            "a.vmx",
            "memSize = \"65536\"\nnumvcpus = \"16\"\nvcpu.hotadd = \"TRUE\"\n",
        )],
    );
    clear(
        "G06",
        &[(
            "a.vmx",
            "memSize = \"65536\"\nnumvcpus = \"8\"\nvcpu.hotadd = \"TRUE\"\n",
        )],
    );
    found("G06", &[("a.vmx", "memSize = \"4096\"\nsched.mem.max = \"2048\"\n")]);
    found(
        "G06",
        &[("a.vmx", "memSize = \"4096\"\nsched.cpu.latencySensitivity = \"high\"\n")],
    );
    let with_cpu = |mhz: u32| {
        format!(
            "memSize = \"4096\"\nsched.mem.pin = \"TRUE\"\nnumvcpus = \"8\"\n\
             sched.cpu.latencySensitivity = \"high\"\nsched.cpu.min = \"{mhz}\"\n"
        )
    };
    let partly = found("G06", &[("a.vmx", &with_cpu(2000))]);
    assert!(partly.fix[0].starts_with("sched.cpu.min:"), "{partly:?}");
    unjudged(
        "G06",
        &[("a.vmx", &with_cpu(20_800))],
        "whether 2600 MHz for each virtual CPU",
    );
}

#[test]
fn an_allocator_that_requests_thp_under_never() {
    let unit = |set: &str| format!("[Service]\nEnvironment={set}\nExecStart=/usr/bin/solver\n");
    let line = |words: &'static str| ("cmdline", words);
    let never = || line("transparent_hugepage=never");
    let glibc = unit("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
    for set in [&glibc, &unit("_RJEM_MALLOC_CONF=thp:always,metadata_thp:auto")] {
        let finding = found("D01", &[("a.service", set), never()]);
        assert_eq!(
            finding.fix[0], "`madvise` in place of `never` in cmdline:1",
            "{finding:?}"
        );
    }
    for other in ["MALLOC_CONF=thp:never", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2"] {
        clear("D01", &[("a.service", &unit(other)), never()]);
    }
    for set in ["MALLOC_CONF=thp:always", "JE_MALLOC_CONF=thp:always"] {
        found("D01", &[("a.service", &unit(set)), never()]);
    }
    clear("D01", &[("a.service", &glibc), line("transparent_hugepage=madvise")]);
    let sizes = line("transparent_hugepage=never thp_anon=2M:always");
    clear("D01", &[("a.service", &glibc), sizes]);
    unjudged("D01", &[("a.service", &glibc)], "no file sets the THP policy");
}

#[test]
fn programs_of_dpdk_against_the_pools() {
    let pool = |text: &'static str| ("sysctl.conf", text);
    let unit = (
        "fwd.service",
        "[Service]\nExecStart=/usr/bin/testpmd -l 0-3 --socket-mem 1024,1024 -- -i\n",
    );
    let second = found("A10", &[unit, pool("vm.nr_hugepages = 600\n")]);
    assert!(
        second
            .consequence
            .contains("at least 1024 pages of 2M, and the pool has 600"),
        "{second:?}"
    );
    clear("A10", &[unit, pool("vm.nr_hugepages = 1024\n")]);
    unjudged("A10", &[unit], "no file sets the size of the pools");
    let whole = found("A10", &[("run.sh", "dpdk-testpmd -l 0-3 -m 2048 -- -i\n"), POOL]);
    assert!(whole.consequence.contains("at least 1024 pages of 2M"), "{whole:?}");
    let twice = found("A10", &[("run.sh", "testpmd -m 64 --socket-mem 64,0 -- -i\n"), POOL]);
    assert!(twice.consequence.contains("-m and --socket-mem cannot"), "{twice:?}");
    let both = ("cmdline", "hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=600");
    unjudged("A10", &[unit, both], "pools of several sizes");
    // The mount that it names has pages of one.
    let from = |directory: &str| format!("dpdk-testpmd -l 0-3 -m 2048 --huge-dir {directory} -- -i\n");
    let of_1g = found("A10", &[("run.sh", &from("/dev/hugepages-1G")), both]);
    assert!(
        of_1g.consequence.contains("at least 2 pages of 1G, and the pool has 1"),
        "{of_1g:?}"
    );
    let mounted = format!(
        "mount -t hugetlbfs -o pagesize=1G none /mnt/huge\n{}",
        from("/mnt/huge/fwd")
    );
    let by_script = found("A10", &[("run.sh", &mounted), both]);
    assert!(
        by_script.consequence.contains("at least 2 pages of 1G"),
        "{by_script:?}"
    );
    let of_2m = found("A10", &[("run.sh", &from("/dev/hugepages")), both]);
    assert!(
        of_2m
            .consequence
            .contains("at least 1024 pages of 2M, and the pool has 600"),
        "{of_2m:?}"
    );
    // Its buffers are on pages of its default size, or on base pages.
    let buffers = |more: &str| format!("buffers {{\n page-size 1G\n}}\n{more}");
    let refused = found("I01", &[("startup.conf", &buffers(""))]);
    assert!(refused.fix[0].contains("default-hugepage-size 1G"), "{refused:?}");
    clear(
        "I01",
        &[("startup.conf", &buffers("memory { default-hugepage-size 1G }\n"))],
    );
    let boot = ("cmdline", "default_hugepagesz=1G hugepagesz=1G hugepages=4");
    clear("I01", &[("startup.conf", &buffers("")), boot]);
}

#[test]
fn php_and_malloc_ask_for_pages_in_a_pod() {
    let pod = |image: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  containers:\n  - name: app\n    image: {image}\n"
        )
    };
    let with = |variable: &str| format!("{}    env: [{{{variable}}}]\n", pod("tool:1"));
    let asking = with("name: GLIBC_TUNABLES, value: 'glibc.malloc.hugetlb=2'");
    let finding = found("C06", &[("p.yaml", &asking), POOL]);
    assert!(finding.fix[0].contains("glibc.malloc.hugetlb=1"), "{finding:?}");
    found(
        "C06",
        &[("p.yaml", &with("name: HUGETLB_MORECORE, value: 'yes'")), POOL],
    );
    let thp = with("name: GLIBC_TUNABLES, value: 'glibc.malloc.hugetlb=1'");
    clear("C06", &[("p.yaml", &thp), POOL]);
    let fix = found("C06", &[("p.yaml", &pod("nextcloud:26.0.1-apache")), POOL])
        .fix
        .join("\n");
    assert!(
        fix.contains("opcache.memory_consumption") && fix.contains("hugepages-2Mi"),
        "{fix}"
    );
    clear("C06", &[("p.yaml", &pod("nginx:1.27")), POOL]);
    let cron = pod("nextcloud:26.0.1-apache") + "    command: [/cron.sh]\n";
    clear("C06", &[("p.yaml", &cron), POOL]);
    clear("C06", &[("p.yaml", &pod("wordpress:cli-2.9")), POOL]);
    // OPcache maps pages of the default size, which here has no pool.
    let other = ("cmdline", "hugepagesz=1G hugepages=4");
    clear("C06", &[("p.yaml", &pod("nextcloud:26.0.1-apache")), other]);
    clear("C06", &[("p.yaml", &pod("nextcloud:26.0.1-apache")), NO_POOL]);
}

#[test]
fn mariadb_and_what_its_pool_may_grow_to() {
    let conf = "[mariadb]\nlarge-pages\ninnodb_buffer_pool_size = 8G\ninnodb_buffer_pool_size_max = 24G\n";
    let pool = |pages: u32| format!("vm.nr_hugepages = {pages}\n");
    let finding = found("F05", &[("my.cnf", conf), ("sysctl.conf", &pool(4400))]);
    assert!(
        finding
            .evidence
            .iter()
            .any(|proof| proof.field == "innodb_buffer_pool_size_max"),
        "{finding:?}"
    );
    assert!(
        finding.fix.join("\n").contains("leave innodb_buffer_pool_size_max out"),
        "{finding:?}"
    );
    clear("F05", &[("my.cnf", conf), ("sysctl.conf", &pool(12_500))]);
    // It tries the pages of all sizes.
    let plain = "[mariadb]\nlarge-pages\ninnodb_buffer_pool_size = 8G\n";
    let boot = |pages: u32| format!("hugepagesz=1G hugepages={pages}");
    clear("F05", &[("my.cnf", plain), ("cmdline", &boot(8))]);
    let short = found("F05", &[("my.cnf", plain), ("cmdline", &boot(7))]);
    assert!(short.consequence.contains("newer releases"), "{short:?}");
}

#[test]
fn servers_that_do_not_start_under_a_policy() {
    let boot = ("cmdline", "quiet transparent_hugepage=always");
    let toku = "[mysqld]\nplugin-load-add = tokudb=ha_tokudb.so\n[mysqld_safe]\nnice = 1\n";
    let finding = found("D29", &[("my.cnf", toku), boot]);
    assert_eq!(finding.severity, Severity::Error);
    let off = format!("{toku}thp-setting = never\n");
    clear("D29", &[("my.cnf", &off), boot]);
    clear(
        "D29",
        &[("my.cnf", toku), ("cmdline", "quiet transparent_hugepage=madvise")],
    );
    let compose = |image: &str| format!("services:\n  sm:\n    image: {image}\n");
    found("D29", &[("compose.yaml", &compose("nuodb/nuodb-ce:latest")), boot]);
    clear("D29", &[("compose.yaml", &compose("nuodb-exporter:1")), boot]);
    let admin = compose("nuodb/nuodb-ce:latest\n    command: [nuoadmin]");
    clear("D29", &[("compose.yaml", &admin), boot]);
    unjudged(
        "D29",
        &[("compose.yaml", &compose("nuodb/nuodb-ce:latest"))],
        "no file sets the THP policy",
    );
}

#[test]
fn programs_in_pods_that_map_huge_pages_by_themselves() {
    let many = ("sysctl.conf", "vm.nr_hugepages = 4096\n");
    let pod = |lines: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: c\n{lines}")
    };
    for (lines, program) in [
        (
            "    image: x/y:1\n    command: [sh, -c, \"exec /bin/monerod --non-interactive\"]\n",
            "monerod",
        ),
        (
            "    image: x/simple-monerod:v1\n    args: [--non-interactive]\n",
            "monerod",
        ),
        ("    image: x/xmrig:6\n", "XMRig"),
        (
            "    image: rayproject/ray:2\n    command: [ray, start, --huge-pages, --plasma-directory=/mnt/hugepages]\n",
            "Ray's object store",
        ),
    ] {
        let finding = found("C06", &[("p.yaml", &pod(lines)), many]);
        assert!(finding.consequence.contains(program), "{finding:?}");
    }
    for lines in [
        "    image: x/xmrig:6\n    args: [--no-huge-pages]\n",
        "    image: x/xmrig:6\n    command: [sh, -c, sleep 1]\n",
        "    image: x/y:1\n    command: [monerod]\n    env: [{name: MONERO_RANDOMX_UMASK, value: \"1\"}]\n",
        "    image: rayproject/ray:2\n    command: [ray, start]\n",
        "    image: x/p2pool:4\n    command: [p2pool, --host, monerod]\n",
        "    image: x/xmrig-proxy:6\n",
        "    image: x/monerod-exporter:1\n    args: [--daemon, monerod]\n",
    ] {
        clear("C06", &[("p.yaml", &pod(lines)), many]);
    }
}

#[test]
fn a_cluster_of_stackgres() {
    let cluster = |pages: &str| {
        format!(
            "apiVersion: stackgres.io/v1\nkind: SGInstanceProfile\nmetadata: {{name: l}}\nspec:\n  cpu: \"8\"\n  memory: 32Gi\n  \
             hugePages: {{hugepages-2Mi: {pages}}}\n---\napiVersion: stackgres.io/v1\nkind: SGPostgresConfig\nmetadata: {{name: c}}\nspec:\n  \
             postgresql.conf: {{shared_buffers: 8GB, huge_pages: \"on\"}}\n"
        )
    };
    let finding = found("C06", &[("cluster.yaml", &cluster("8Gi"))]);
    assert!(
        finding.consequence.contains("its limit is 4096: it does not start"),
        "{finding:?}"
    );
    clear("C06", &[("cluster.yaml", &cluster("9Gi"))]);
    let by_default = cluster("1Gi").replace(", huge_pages: \"on\"", "");
    clear("C06", &[("cluster.yaml", &by_default)]);
    let plain = by_default.replace("hugePages: {hugepages-2Mi: 1Gi}", "");
    clear("C06", &[("cluster.yaml", &plain), POOL]);
}

#[test]
fn what_open_vswitch_asks_of_each_node() {
    let script = "#!/bin/sh\novs-vsctl --no-wait set Open_vSwitch . other_config:dpdk-socket-mem=\"2048,2048\"\n";
    let on = |pages: u64| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", pages, pages, 0)));
        evidence.files = given(&[("ovs.sh", script)]);
        judge(&evidence).of("A10").cloned().collect::<Vec<_>>()
    };
    unjudged(
        "A10",
        &[("ovs.sh", &script.replace("2048,2048", "$MEM")), POOL],
        "no list of MiB",
    );
    // There is one node, of which 1024 pages are asked: more pages do not serve the other one, which I01 names.
    assert_eq!(on(512).len(), 1, "{:?}", on(512));
    assert!(
        on(2048)
            .iter()
            .all(|finding| !finding.consequence.contains("on node 0")),
        "{:?}",
        on(2048)
    );
}

#[test]
fn a_hugetlbfs_that_was_taken_for_a_device() {
    let device = "docker run -d --device=/dev/hugepages:/dev/hugepages --shm-size=4g oracle/database:19.3.0-ee\n";
    let compose = "services:\n  db:\n    image: oracle/database\n    devices: [\"/dev/hugepages:/dev/hugepages\"]\n";
    let quadlet = "[Container]\nImage=oracle/database\nAddDevice=/dev/hugepages\n";
    for file in [("run.sh", device), ("compose.yaml", compose), ("db.container", quadlet)] {
        let diagnosis = judged(&[file]);
        let finding = diagnosis.of("I01").next().unwrap_or_else(|| panic!("{diagnosis:#?}"));
        assert!(finding.consequence.contains("a mount and no device"), "{finding:?}");
    }
}

#[test]
fn openj9_by_its_options() {
    let java = "java -Xlp -Xms4g -Xmx4g -Xcodecachetotal256m -jar app.jar\n";
    let boot = |pages: u32| format!("default_hugepagesz=1G hugepagesz=1G hugepages={pages}");
    // The code cache takes the next smaller size.
    clear("E01", &[("java.sh", java), ("cmdline", &boot(4))]);
    let short = found("E01", &[("java.sh", java), ("cmdline", &boot(3))]);
    assert!(short.fix.join("\n").contains("-verbose:sizes"), "{short:?}");
    let starts = |options: &str, pages: u32, outcome: &str| {
        let java = format!("java -Xlp:objectheap:pagesize=2M{options} -Xmx4g -jar app.jar\n");
        let boot = format!("hugepages={pages}");
        match outcome {
            "" => clear("E01", &[("java.sh", &java), ("cmdline", &boot)]),
            outcome => {
                let short = found("E01", &[("java.sh", &java), ("cmdline", &boot)]);
                assert!(short.consequence.contains(outcome), "{options}: {short:?}");
            }
        }
    };
    starts(" -Xlp:codecache:pagesize=4K", 2048, "");
    starts(" -Xlp:codecache:pagesize=4K", 2047, "will use base pages");
    starts(" -Xlp:codecache:pagesize=2M", 2048, "will use base pages");
    starts(",strict", 2047, "does not start");
    starts(",strict", 2048, "will use base pages");
    starts(",warn", 2047, "will use base pages");
    let old = found("E13", &[("java.sh", java), ("cmdline", &boot(4))]);
    assert!(!old.fix.join("\n").contains("UseLargePages"), "{old:?}");
}
