//! Every kind of file: what is read, what is garbled and where, and that nothing makes a reader panic.

use model::Bytes;
use proptest::prelude::*;

use super::{Backing, FileKind, Given, GivenError};
use crate::{Kind, Limit};

fn given(files: &[(&str, &str)]) -> Given {
    let mut given = Given::default();
    for (path, text) in files {
        given
            .add(path, text.as_bytes(), None)
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    given
}

fn kind(path: &str, text: &str) -> FileKind {
    FileKind::of(path, text).unwrap_or_else(|error| panic!("{error}"))
}

const DOMAIN: &str = "<?xml version='1.0'?>\n<domain type='kvm'>\n <name>db</name>\n <memory unit='GiB'>8</memory>\n <memoryBacking>\n  \
                      <hugepages>\n   <page size='1' unit='G' nodeset='1'/>\n   <page size='2' unit='M'/>\n  </hugepages>\n  \
                      <allocation mode='immediate'/>\n </memoryBacking>\n <cpu><numa>\n  <cell id='0' memory='4' unit='GiB'/>\n  \
                      <cell id='1' memory='4' unit='GiB'/>\n </numa></cpu>\n</domain>\n";
const POD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: db\nspec:\n  template:\n    spec:\n      containers:\n      - name: pg\n        \
                   env:\n        - name: GLIBC_TUNABLES\n          value: glibc.malloc.hugetlb=2\n        volumeMounts:\n        - name: huge\n          \
                   mountPath: /dev/hugepages\n        resources:\n          requests: {cpu: 500m, hugepages-2Mi: 1Gi}\n          limits: {hugepages-2Mi: 1Gi}\n      \
                   volumes:\n      - name: huge\n        emptyDir: {medium: HugePages-2Mi}\n";

/// Lines of nodes are no boot line, though a word of theirs is one of its parameters.
#[test]
fn pages_by_node_are_no_boot_line() {
    assert_eq!(
        kind("a", "node=0 hugepages=1024\nnode=1 hugepages=1024\n"),
        FileKind::Sysctl
    );
    assert_eq!(kind("a", "ro hugepages=1024\n"), FileKind::Cmdline);
    let given = given(&[("pf_ring/hugepages.conf", "node=0 hugepagenumber=4\n")]);
    assert_eq!((given.boot.len(), given.pool_writes.len()), (0, 1));
}

#[test]
fn names_tell_the_kind() {
    for (path, kind) in [
        ("/etc/sysctl.conf", FileKind::Sysctl),
        ("etc/sysctl.d/60-x.conf", FileKind::Sysctl),
        ("/proc/cmdline", FileKind::Cmdline),
        ("/etc/default/grub", FileKind::Cmdline),
        ("/etc/security/limits.d/9.conf", FileKind::Limits),
        ("/etc/systemd/system/db.service", FileKind::Unit),
        ("/etc/systemd/system/db.service.d/10.conf", FileKind::Unit),
        ("/etc/systemd/system.conf", FileKind::Unit),
        ("etc/systemd/user.conf.d/limits.conf", FileKind::Unit),
        ("config/jvm.options", FileKind::Java),
        ("conf/jvm11-server.options", FileKind::Java),
        ("bin/setenv.sh", FileKind::Environment),
        ("bin/standalone.conf", FileKind::Environment),
        ("docker-compose.prod.yml", FileKind::Compose),
        ("/etc/docker/daemon.json", FileKind::Compose),
        ("initORCL.ora", FileKind::Oracle),
        ("/etc/tuned/db/tuned.conf", FileKind::Tuned),
        ("postgresql.auto.conf", FileKind::Postgres),
        ("/etc/my.cnf", FileKind::Mysql),
        ("db.vmx", FileKind::Vmware),
        ("containers/systemd/db.container", FileKind::Compose),
        ("Users/x/.wslconfig", FileKind::Cmdline),
        ("configuration.nix", FileKind::Node),
    ] {
        assert_eq!(self::kind(path, ""), kind, "{path}");
    }
}

#[test]
fn contents_tell_the_kind() {
    for (text, kind) in [
        ("vm.nr_hugepages = 5\n", FileKind::Sysctl),
        ("[main]\ninclude=x\n[sysctl]\nvm.swappiness=1\n", FileKind::Tuned),
        (
            "w+ /sys/kernel/mm/transparent_hugepage/enabled - - - - always\n",
            FileKind::Sysctl,
        ),
        ("w! /proc/sys/vm/compaction_proactiveness - - - - 0\n", FileKind::Sysctl),
        ("BOOT_IMAGE=/vmlinuz root=/dev/sda hugepages=4", FileKind::Cmdline),
        ("oracle soft memlock unlimited\n", FileKind::Limits),
        ("*.sga_target=4G\n", FileKind::Oracle),
        (
            "[hypervisor.clh]\npath = \"/usr/bin/cloud-hypervisor\"\n",
            FileKind::Kata,
        ),
        ("{\"default-ulimits\": {}}\n", FileKind::Compose),
        ("[Unit]\nX=1\n[Service]\nLimitMEMLOCK=1\n", FileKind::Unit),
        ("[Manager]\nDefaultLimitMEMLOCK=1\n", FileKind::Unit),
        ("#!/bin/sh\nexec /opt/jdk/bin/java -Xmx1g Main\n", FileKind::Java),
        ("java\0-Xmx1g\0Main\0", FileKind::Java),
        ("#shared_buffers = 1GB\n", FileKind::Postgres),
        ("[mysqld]\nlarge-pages\n", FileKind::Mysql),
        ("#!/bin/sh\nexport KAFKA_HEAP_OPTS=\"-Xmx1G\"\n", FileKind::Environment),
        ("CATALINA_OPTS+=' -XX:+UseLargePages'\n", FileKind::Environment),
        ("services:\n  db:\n    image: mariadb\n", FileKind::Compose),
        ("sudo docker run -d postgres:17\n", FileKind::Compose),
        (POD, FileKind::Pod),
        (DOMAIN, FileKind::Libvirt),
        ("taskset -c 1 qemu-system-x86_64 -m 4G\n", FileKind::Qemu),
        ("/Mem/AllocGuestLargePage = 1\n", FileKind::Vmware),
        ("[Container]\nImage=postgres\n", FileKind::Compose),
        ("apiVersion: tuned.openshift.io/v1\nkind: Tuned\n", FileKind::Node),
        ("[settings.kernel.sysctl]\n", FileKind::Node),
        ("version: v1alpha1\nmachine:\n  sysctls:\n", FileKind::Node),
        ("config:\n  limits.memory.hugepages: \"true\"\n", FileKind::Incus),
    ] {
        assert_eq!(self::kind("unknown", text), kind, "{text}");
    }
}

#[test]
fn what_could_be_anything_or_two_things_has_to_be_named() {
    let told = |text: &str| FileKind::of("x.txt", text).expect_err("unsure").to_string();
    assert!(told("hello\n").contains("neither its name nor its content") && told("").contains("--as sysctl|cmdline|"));
    let two = told("vm.nr_hugepages = 5\n[mysqld]\n");
    assert!(two.contains("could be sysctl or mysql"), "{two}");
    let mut given = Given::default();
    assert_eq!(
        given.add("x.txt", b"vm.nr_hugepages = 5\n[mysqld]\n", Some(FileKind::Sysctl)),
        Ok(FileKind::Sysctl)
    );
    assert_eq!(
        given
            .sysctl
            .number("vm.nr_hugepages")
            .map(|found| found.map(|(pages, _)| pages)),
        Ok(Some(5))
    );
    assert!("SYSCTL".parse() == Ok(FileKind::Sysctl) && "dns".parse::<FileKind>().is_err());
}

#[test]
fn bad_lines_are_named_and_the_others_hold() {
    let given = given(&[
        ("sysctl.conf", "# x\nvm.nr_hugepages 5\n-net.ipv4\nvm.swappiness=1\n"),
        (
            "limits.conf",
            "* soft memlock 64\nroot hard memlock lots\nroot memlock 64\n",
        ),
        (
            "db.service",
            "[Service]\nExecStart=/bin/x \\\n  --flag\nLimitMEMLOCK=much\nUser\n",
        ),
        ("postgresql.conf", "shared_buffers = 1GB # x\nhuge_pages 'on'\nport\n"),
        ("my.cnf", "[client]\n???\n[mysqld]\nlarge-pages\n= 5\n"),
    ]);
    let garbled: Vec<&str> = given.garbled.iter().map(|why| why.place.as_str()).collect();
    let places = [
        "sysctl.conf:2",
        "limits.conf:2",
        "limits.conf:3",
        "db.service:4",
        "db.service:5",
        "postgresql.conf:3",
        "my.cnf:5",
    ];
    assert_eq!(garbled, places);
    assert_eq!(
        given.sysctl.last("vm.swappiness").map(|line| line.place.as_str()),
        Some("sysctl.conf:4")
    );
    let value = |settings: &crate::config::Settings, name| settings.last(name).map(|line| line.value.clone());
    assert_eq!(
        value(&given.servers(Kind::Postgres)[0].settings, "huge_pages").as_deref(),
        Some("on")
    );
    assert_eq!(
        value(&given.servers(Kind::Postgres)[0].settings, "shared_buffers").as_deref(),
        Some("1GB")
    );
    assert_eq!(
        value(&given.servers(Kind::Mysql)[0].settings, "large_pages").as_deref(),
        Some("ON")
    );
}

#[test]
fn the_command_line_of_the_kernel_stands_alone_or_in_grub() {
    let line = |path, text| given(&[(path, text)]).boot.remove(0);
    let alone = line("/proc/cmdline", "quiet hugepagesz=1G hugepages=4\n");
    assert_eq!((alone.place.as_str(), alone.boot.pools.len()), ("/proc/cmdline:1", 1));
    let grub = line(
        "grub",
        "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet hugepages=3\"\nGRUB_CMDLINE_LINUX='transparent_hugepage=never'\n",
    );
    assert_eq!(
        (grub.place.as_str(), grub.boot.thp.as_deref()),
        ("grub:2", Some("never"))
    );
    assert_eq!(grub.boot.pools[0].pages.total(), 3);
    // GRUB ends the line at a semicolon.
    let value = "GRUB_CMDLINE_LINUX=\"thp_anon=64K:always;2M:inherit hugepages=3\"\n";
    for (path, text) in [
        ("grub", value.to_owned()),
        ("a.sh", format!("echo '{}' >> /etc/default/grub\n", value.trim())),
    ] {
        let given = given(&[(path, &text)]);
        let line = &given.boot[0].boot;
        assert_eq!(
            (line.pools.len(), line.thp_sizes[0].value.as_str()),
            (0, "64K:always"),
            "{path}"
        );
        assert_eq!(given.refusals.len(), 1, "{path}");
    }
    assert_eq!(
        line("cmdline.txt", "root=/dev/sda hugepagesz=3M hugepages=4")
            .boot
            .ignored
            .len(),
        2
    );
}

#[test]
fn drop_ins_of_one_service_are_one() {
    let given = given(&[
        (
            "/etc/systemd/system/db.service",
            "[Service]\nUser=pg\nLimitMEMLOCK=64K\n",
        ),
        (
            "/etc/systemd/system/db.service.d/x.conf",
            "[Service]\nEnvironment=A=1 \"B=2 3\"\nMemoryTHP=madvise\nLimitMEMLOCK=infinity\n",
        ),
    ]);
    let [service] = &given.services[..] else {
        panic!("{:?}", given.services)
    };
    assert_eq!(
        service.unit.memlock,
        Some((Limit::Unlimited, "/etc/systemd/system/db.service.d/x.conf:4".to_owned()))
    );
    assert_eq!(service.user.as_ref().map(|user| user.value.as_str()), Some("pg"));
    let variables: Vec<(&str, &str)> = given
        .environment()
        .map(|line| (line.name.as_str(), line.value.as_str()))
        .collect();
    assert_eq!(variables, [("A", "1"), ("B", "2 3")]);
}

#[test]
fn java_is_read_as_a_process_would_be() {
    for text in [
        "# x\nexec /opt/jdk/bin/java -XX:+UseLargePages \\\n  -Xmx4g -jar app.jar\n",
        "/opt/jdk/bin/java\0-XX:+UseLargePages\0-Xmx4g\0Main\0",
        "## options\n-XX:+UseLargePages\n17-:-Xmx4g\n",
        "numactl -m 0 java -XX:+UseLargePages -Xmx4g Main",
    ] {
        let java = given(&[("start", text)]).java.remove(0);
        assert!(
            java.jvm.large_pages && java.jvm.heap_max == Some(Bytes::gib(4)),
            "{text:?}: {java:?}"
        );
    }
    let wrong = Given::default().add("start", b"java -Xmx'", None);
    assert!(
        matches!(&wrong, Err(GivenError::Garbled(why)) if why.place == "start:1"),
        "{wrong:?}"
    );
}

/// Variables in which scripts hand on options: each assignment adds to those before it.
#[test]
fn options_in_variables_of_scripts() {
    for text in [
        "JAVA_OPTS=\"$JAVA_OPTS -Xmx4g -XX:+UseLargePages\"\n",
        "if [ \"x$JAVA_OPTS\" = \"x\" ]; then\n   JAVA_OPTS=\"-Xms64m -Xmx4g\"\n   JAVA_OPTS=\"$JAVA_OPTS -XX:+UseLargePages\"\nfi\n",
        "CATALINA_OPTS=\"-Xmx4g \\\n  -XX:+UseLargePages\"; export CATALINA_OPTS\n",
        "export CATALINA_OPTS='-Xmx4g\n -XX:+UseLargePages'\n",
        "HEAP=4g\nexport JVM_OPTS=\"-Xms${HEAP} -Xmx$HEAP -XX:+UseLargePages $MORE\"\n",
        "SOLR_HEAP_OPTS=\"-Xmx${SOLR_HEAP:-4g}\"\nSOLR_OPTS+=\" -XX:+UseLargePages\"\n",
    ] {
        let java = given(&[("setenv.sh", text)]).java().remove(0);
        let read = (java.jvm.large_pages, java.jvm.heap_max, &java.jvm.refused[..]);
        assert_eq!(read, (true, Some(Bytes::gib(4)), &[][..]), "{text}");
    }
    let unknown = given(&[("setenv.sh", "JAVA_OPTS=\"-Xmx${HEAP} -XX:+UseLargePages\"\n")]).java();
    assert_eq!((unknown[0].jvm.heap_max, &unknown[0].jvm.refused[..]), (None, &[][..]));
    let unit = "[Service]\nEnvironment=\"JAVA_OPTS=-Xmx4g -XX:+UseLargePages\"\nExecStart=/opt/app/start.sh\n";
    assert_eq!(
        given(&[("app.service", unit)]).java()[0].jvm.heap_max,
        Some(Bytes::gib(4))
    );
}

#[test]
fn containers_of_compose_files_and_commands() {
    let file = "services:\n  db:\n    image: mariadb:lts\n    cap_add: [CAP_IPC_LOCK]\n    ulimits:\n      memlock: {soft: -1, hard: -1}\n    \
                command: --large-pages --innodb-buffer-pool-size=1G\n  app:\n    image: example/app\n    privileged: true\n    \
                ulimits:\n      memlock: \"65536\"\n    environment:\n      JAVA_TOOL_OPTIONS: -Xmx1g -XX:+UseLargePages\n    \
                command: [java, -jar, app.jar]\n  pg:\n    image: docker.io/bitnami/postgresql:16\n    environment:\n      - A=1\n";
    let given = given(&[("compose.yaml", file)]);
    let [db, app, pg] = &given.runs[..] else {
        panic!("{:?}", given.runs)
    };
    assert_eq!(
        (db.may_lock, &db.memlock),
        (true, &Some((Limit::Unlimited, "compose.yaml:6".to_owned())))
    );
    assert_eq!(
        (app.may_lock, app.memlock.as_ref().map(|(limit, _)| *limit)),
        (true, Some(Limit::Bytes(65536)))
    );
    assert_eq!(
        (pg.kind, &pg.environment[0].name[..]),
        (Some(crate::Kind::Postgres), "A")
    );
    let mysql = &given.servers(Kind::Mysql)[0];
    assert!(mysql.is_mariadb && mysql.asks(), "{mysql:?}");
    assert_eq!(
        (given.servers(Kind::Postgres).len(), given.java()[0].jvm.heap_max),
        (1, Some(Bytes::gib(1)))
    );
    for wrong in [
        "services:\n  db:\n    image: x\n    ulimits:\n      memlock: lots\n",
        "services: []\n",
    ] {
        let error = Given::default()
            .add("x.yaml", wrong.as_bytes(), Some(FileKind::Compose))
            .expect_err(wrong);
        assert!(error.to_string().contains("x.yaml"), "{error}");
    }
}

#[test]
fn commands_of_containers_are_read_as_their_programs_do() {
    let line = "sudo docker run -d --rm -it --name db -e POSTGRES_PASSWORD=x --ulimit memlock=262144:262144 --cap-add=IPC_LOCK \\\n  \
                -v /data:/var/lib postgres:17 -c shared_buffers=4GB -c huge_pages=on\n";
    let given = self::given(&[("start", line)]);
    let [run] = &given.runs[..] else {
        panic!("{:?}", given.runs)
    };
    assert_eq!((run.name.as_str(), run.may_lock), ("db", true));
    assert_eq!(
        run.memlock.as_ref().map(|(limit, _)| *limit),
        Some(Limit::Bytes(262_144))
    );
    let server = &given.servers(Kind::Postgres)[0];
    assert_eq!(
        server.settings.last("shared_buffers").map(|set| set.value.as_str()),
        Some("4GB")
    );
    let attached = [
        "docker run -itd -p5432:5432 -m4g -eA=1 postgres:17 -c huge_pages=on\n",
        "docker run -dp=5432:5432 -m=4g -e=A=1 -- postgres:17 -c huge_pages=on\n",
        "[Container]\nImage=postgres:17\nExec=-c huge_pages=on\nPodmanArgs=-m4g -eA=1\n",
    ];
    for text in attached {
        let given = self::given(&[("db.container", text)]);
        let run = &given.runs[0];
        assert_eq!(
            (run.image.as_str(), run.memory.is_some()),
            ("postgres:17", true),
            "{text}"
        );
        let variables: Vec<&str> = run.environment.iter().map(|set| set.value.as_str()).collect();
        assert_eq!(
            (variables, &run.words[1..]),
            (vec!["1"], &["-c".to_owned(), "huge_pages=on".to_owned()][..]),
            "{text}"
        );
    }
    let given = self::given(&[(
        "start",
        "podman run --no-hosts --tls-verify=false --privileged=false postgres:17\n",
    )]);
    assert_eq!(
        (given.runs[0].image.as_str(), given.runs[0].may_lock),
        ("postgres:17", false)
    );
}

/// A shell puts the values of variables into the words of a command.
#[test]
fn a_command_of_a_script_has_the_values_of_its_variables() {
    for text in [
        "HEAP=4g\njava -Xms$HEAP -Xmx$HEAP -XX:+UseLargePages -jar a.jar\n",
        "java -Xmx${HEAP:-4g} -XX:+UseLargePages -jar a.jar\n",
        "HEAP=4g\nexec /usr/bin/java \"-XX:MaxHeapSize=${HEAP}\" -XX:+UseLargePages -jar a.jar\n",
        "MEM=4096\nOPTS=\"-Xmx${MEM}M -XX:+UseLargePages\"\njava $OPTS -jar a.jar\n",
        "export JDK_JAVA_OPTIONS=-XX:+UseLargePages\nHEAP=4g\nexec java -Xmx$HEAP -jar a.jar\n",
        "HEAP=4g\ndocker run -e JAVA_TOOL_OPTIONS=\"-Xmx$HEAP -XX:+UseLargePages\" app\n",
        "OPTS=\"-Xmx4g -XX:+UseLargePages\"\ndocker run -e \"JAVA_TOOL_OPTIONS=$OPTS\" app\n",
    ] {
        let given = given(&[("start.sh", &format!("#!/bin/sh\n{text}"))]);
        let java = given.java();
        let [java] = &java[..] else { panic!("one JVM: {text}") };
        let read = (java.jvm.large_pages, java.jvm.heap_max, &given.refused()[..]);
        assert_eq!(read, (true, Some(Bytes::gib(4)), &[][..]), "{text}");
    }
}

#[test]
fn of_the_commands_of_containers_run_and_create_alone_start_one() {
    let script = |command: &str| {
        let mut given = Given::default();
        let text = format!("#!/bin/sh\ndocker pull postgres:17\n{command}\n");
        given.add("a.sh", text.as_bytes(), None).map(|_| given.runs)
    };
    for command in [
        "docker create postgres:17",
        "docker --context x --debug container run -d postgres:17",
        "sudo podman --root=/x run postgres:17",
    ] {
        let runs = script(command).expect(command);
        let images: Vec<&str> = runs.iter().map(|run| run.image.as_str()).collect();
        assert_eq!(images, ["postgres:17"], "{command}");
    }
    for command in [
        "docker stack deploy -c a.yml run",
        "docker compose run --rm db",
        "docker volume create data",
        "podman pod create run",
        "docker exec run ls",
    ] {
        let error = script(command).expect_err(command);
        assert!(matches!(error, GivenError::Unsure { .. }), "{command}: {error}");
        let set = script(&format!("{command}\nsysctl -w vm.nr_hugepages=4"));
        assert_eq!(set, Ok(Vec::new()), "{command}");
    }
    let error = script("docker run -d").expect_err("no image");
    assert!(error.to_string().contains("names no image"), "{error}");
}

#[test]
fn what_is_in_front_of_a_container_s_command_hides_it_not() {
    for (line, command) in [
        (1, "sudo -E docker run"),
        (1, "sudo -n docker run"),
        (1, "time -p docker run"),
        (1, "numactl --membind=0 docker run"),
        (1, "systemd-run --scope -- docker run"),
        (1, "systemd-run -p MemoryMax=8G docker run"),
        (1, "nice -n 5 docker run"),
        (1, "sudo -u docker docker run"),
        (1, "podman --transient-store run"),
        (1, "podman --of-tomorrow container create"),
        (1, "nerdctl --insecure-registry run"),
        (3, "docker network create net\ndocker volume create vol\ndocker run"),
        (4, "# docker run\necho \"now\nrun it\"\ndocker run"),
        (3, "docker pull \\\n app\ndocker \\\n run"),
        (0, "docker stack deploy"),
        (0, "docker compose run"),
        (0, "docker volume create"),
        (0, "podman --transient-store pod create"),
        (0, "nerdctl --insecure-registry compose run"),
        (0, "docker exec c run"),
        (0, "docker pull"),
        (0, "sudo -u docker run"),
    ] {
        for (name, head, above) in [("start", "", 0), ("a.sh", "#!/bin/sh\n", 1)] {
            let text = format!("{head}{command} --sysctl vm.nr_hugepages=1024 app\n");
            let mut given = Given::default();
            let _ = given.add(name, text.as_bytes(), None);
            let places: Vec<&str> = given.runs.iter().map(|run| run.place.as_str()).collect();
            let place = (line > 0).then(|| format!("{name}:{}", line + above));
            assert_eq!(places, Vec::from_iter(place.as_deref()), "{text}");
        }
    }
}

#[test]
fn the_last_default_of_systemd_is_that_of_all_services() {
    let drop_in = |name: &str, limit: &str| {
        let path = format!("/etc/systemd/system.conf.d/{name}.conf");
        (path, format!("[Manager]\nDefaultLimitMEMLOCK={limit}\n"))
    };
    let own = (
        "/etc/systemd/system.conf",
        "[Manager]\nDefaultLimitMEMLOCK=1G:2G\nDefaultLimitMEMLOCK=\n",
    );
    let (first, last) = (drop_in("10", "2G"), drop_in("20", "infinity"));
    let (first, last) = ((&*first.0, &*first.1), (&*last.0, &*last.1));
    let set = ("own.service", "[Service]\nLimitMEMLOCK=1M\n");
    let users = ("user.conf", "[Manager]\nDefaultLimitMEMLOCK=3G\n");
    for (files, wanted) in [
        (vec![own], Some(Limit::Bytes(1 << 30))),
        (vec![first, own], Some(Limit::Bytes(2 << 30))),
        (vec![last, first, own], Some(Limit::Unlimited)),
        (vec![users], None),
    ] {
        let before = self::given(&[&[("db.service", "[Service]\n"), set], &files[..]].concat());
        let after = self::given(&[&files[..], &[("db.service", "[Service]\n"), set]].concat());
        for given in [before, after] {
            let limit = |at: usize| given.services[at].unit.limit().map(|(_, (limit, _))| *limit);
            assert_eq!((limit(0), limit(1)), (wanted, Some(Limit::Bytes(1 << 20))), "{files:?}");
            assert_eq!(given.garbled, []);
        }
    }
    let of_users = given(&[users]).not_read().collect::<Vec<_>>();
    assert!(of_users[0].contains("managers of users"), "{of_users:?}");
}

#[test]
fn a_unit_writes_with_the_rights_of_all_of_its_files() {
    let write = "/bin/sh -c 'echo 8 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'";
    let unit = format!("[Service]\nUser=app\nExecStartPre={write}\n");
    for (drop_in, is_refused, place) in [
        ("LimitMEMLOCK=8M".to_owned(), true, None),
        ("User=root".to_owned(), false, Some("x.service:3")),
        ("PermissionsStartOnly=yes".to_owned(), false, Some("x.service:3")),
        (
            format!("ExecStartPre=\nExecStartPre=+{write}"),
            false,
            Some("x.service.d/a.conf:3"),
        ),
        ("ExecStartPre=".to_owned(), false, None),
    ] {
        let drop_in = format!("[Service]\n{drop_in}\n");
        let mut files = [("x.service", unit.as_str()), ("x.service.d/a.conf", drop_in.as_str())];
        for _either_order in 0..2 {
            let given = given(&files);
            assert_eq!(given.garbled.len(), usize::from(is_refused), "{files:?}");
            let places: Vec<&str> = given.pool_writes.iter().map(|write| &*write.line.place).collect();
            assert_eq!(places, Vec::from_iter(place), "{files:?}");
            files.reverse();
        }
    }
    let of_another_machine = unit.replace("User=app\n", "");
    let both = given(&[("a/x.service", &unit), ("b/x.service", &of_another_machine)]);
    assert_eq!(both.garbled, []);
}

#[test]
fn what_the_manager_of_systemd_ignores_is_garbled() {
    for line in [
        "[Manager]\nDefaultLimitMEMLOCK=unlimited",
        "[Manager]\nDefaultLimitMEMLOCK=2G:1G",
        "[Manager]\nDefaultLimitMEMLOCKSoft=infinity",
        "[Manager]\nLimitMEMLOCK=infinity",
        "[Service]\nDefaultLimitMEMLOCK=infinity",
    ] {
        for path in ["etc/systemd/system.conf", "etc/systemd/user.conf"] {
            let given = self::given(&[(path, line)]);
            assert_eq!((given.garbled.len(), given.default_memlock), (1, None), "{line}");
            assert_eq!(given.garbled[0].place, format!("{path}:2"));
        }
    }
}

#[test]
fn objects_that_have_no_pods_are_taken_and_others_refused() {
    let read = |version: &str, kind: &str| {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: a\n");
        let mut given = Given::default();
        given.add("a.yaml", text.as_bytes(), None).map(|_| given)
    };
    for (version, kind) in [
        ("v1", "LimitRange"),
        ("v1", "ResourceQuota"),
        ("v1", "Service"),
        ("v1", "PersistentVolumeClaim"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("policy/v1", "PodDisruptionBudget"),
    ] {
        let given = read(version, kind).expect(kind);
        let unread: Vec<String> = given.not_read().collect();
        assert_eq!((given.pods.len(), unread.len()), (0, 1));
        assert!(
            unread[0].starts_with("a.yaml: ") && unread[0].contains(kind),
            "{unread:?}"
        );
    }
    for (version, kind) in [
        ("v1", "Pod"),
        ("v1", "pod"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "Job"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("example.com/v1", "Database"),
    ] {
        let error = read(version, kind).expect_err(kind);
        assert!(error.to_string().contains("no pod is in it"), "{error}");
    }
}

#[test]
fn a_profile_of_tuned_is_read_by_its_sections() {
    let text = "[main]\nsummary=db\n[sysctl]\nvm.nr_hugepages=64\n[vm]\ntransparent_hugepages=never\n[bootloader]\ncmdline_db=+hugepagesz=1G hugepages=4\n";
    let given = given(&[("tuned.conf", text)]);
    assert_eq!(given.garbled, []);
    assert_eq!(
        given
            .sysctl
            .number("vm.nr_hugepages")
            .map(|found| found.map(|(pages, _)| pages)),
        Ok(Some(64))
    );
    assert_eq!(
        (given.policies[0].value.as_str(), given.boot[0].boot.pools.len()),
        ("never", 1)
    );
    assert!(given.has(FileKind::Cmdline));
}

#[test]
fn pods_tell_what_their_containers_ask_for() {
    let given = given(&[("db.yaml", POD)]);
    let [pod] = &given.pods[..] else {
        panic!("{:?}", given.pods)
    };
    assert_eq!((pod.name.as_str(), pod.place.as_str()), ("db", "db.yaml:8"));
    let container = &pod.containers[0];
    let asked: Vec<_> = container
        .hugetlb()
        .iter()
        .map(|(page, _, quantity)| (*page, quantity.amount))
        .collect();
    assert_eq!(asked, [(Bytes::mib(2), 1 << 30)]);
    assert_eq!(
        (container.mounts[0].volume.as_str(), pod.volumes[0].page()),
        ("huge", Some(Bytes::mib(2)))
    );
    assert_eq!(given.environment().count(), 1);
    for (text, place) in [
        ("a: [1\n", "x.yaml"),
        (
            "spec:\n  containers:\n  - resources:\n      limits:\n        memory: lots\n",
            "x.yaml:5",
        ),
        ("kind: Service\n", "x.yaml"),
        (&"- ".repeat(200), "x.yaml"),
    ] {
        let wrong = Given::default()
            .add("x.yaml", text.as_bytes(), Some(FileKind::Pod))
            .expect_err(text);
        assert!(wrong.to_string().contains(place), "{wrong}");
    }
}

#[test]
fn guests_of_libvirt_and_qemu() {
    let libvirt = given(&[("db.xml", DOMAIN)]).guests.remove(0);
    assert_eq!(
        (libvirt.name.as_str(), libvirt.place.as_str(), libvirt.prealloc),
        ("db", "db.xml:6", true)
    );
    let pages = [Bytes::mib(2), Bytes::gib(1)].map(|page| (Bytes::gib(4), Backing::Hugetlb(Some(page))));
    assert_eq!(libvirt.memory, pages);
    let plain = given(&[("a.xml", "<domain><memory>1048576</memory></domain>")])
        .guests
        .remove(0);
    assert_eq!(plain.memory, [(Bytes::gib(1), Backing::Any)]);
    let bad = Given::default()
        .add("a.xml", b"<domain>\n<memory unit='ell'>5</memory></domain>", None)
        .expect_err("a unit");
    assert!(bad.to_string().contains("a.xml:2"), "{bad}");
    let qemu = "qemu-system-x86_64 -m 4G -machine memory-backend=m \
                -object memory-backend-memfd,id=m,size=4G,hugetlb=on,hugetlbsize=1G,reserve=off\n";
    let qemu = given(&[("start.sh", qemu)]).guests.remove(0);
    assert_eq!(qemu.memory, [(Bytes::gib(4), Backing::Hugetlb(Some(Bytes::gib(1))))]);
    assert!(qemu.unreserved && !qemu.prealloc);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a file holds, each reader answers, and a garbled line has a place.
    #[test]
    fn no_content_upsets_a_reader(
        which in 0..FileKind::ALL.len(),
        seed in prop_oneof![Just(POD), Just(DOMAIN), Just("[Service]\nLimitMEMLOCK=1\nEnvironment=\"A=1\"\n"),
            Just("java -Xmx4g -XX:+UseLargePages 'a b'"), Just("[mysqld]\nlarge-pages=1\n"), Just("huge_pages = 'try'\n")],
        at: prop::sample::Index,
        noise in "[ -~\\n\\t\u{0}\u{fe}]{0,12}",
    ) {
        let at = at.index(seed.len());
        let text = format!("{}{noise}{}", &seed[..at], &seed[at..]);
        let mut given = Given::default();
        let _ = given.add("x", text.as_bytes(), Some(FileKind::ALL[which]));
        let _ = FileKind::of("x", &text);
        prop_assert!(given.garbled.iter().all(|why| why.place.starts_with("x:")), "{:?}", given.garbled);
    }

    #[test]
    fn no_bytes_upset_a_reader(which in 0..FileKind::ALL.len(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Given::default().add("x", &bytes, Some(FileKind::ALL[which]));
    }
}

#[test]
fn nodes_as_their_operators_take_them() {
    let profile = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nspec:\n  hugepages:\n    pages:\n    \
                   - {size: 1Gi, count: 4, node: 0}\n    - {size: 1Gi, count: 4, node: 0}\n";
    let refused = given(&[("p.yaml", profile)]).refusals;
    for words in [
        "need a defaultHugepagesSize",
        "`1Gi` is no size",
        "of node 0 are there twice",
    ] {
        assert!(refused.iter().any(|own| own.unread.why.contains(words)), "{refused:?}");
    }
    let pool = "linuxConfig:\n  transparentHugepageEnabled: TRANSPARENT_HUGEPAGE_ENABLED_NEVER\n";
    assert_eq!(given(&[("g.yaml", pool)]).policies[0].value, "never");
    let class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nspec:\n  userData: |\n    [settings.kernel.sysctl]\n    \
                 'vm.nr_hugepages' = '64'\n";
    let of_class = given(&[("c.yaml", class)]);
    let pages = of_class.sysctl.last("vm.nr_hugepages");
    assert_eq!(pages.map(|set| set.place.as_str()), Some("c.yaml:6"));
    let config = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec:\n  config:\n    storage:\n      files:\n      \
                  - path: /etc/sysctl.d/60-huge.conf\n        contents: {source: \"data:;base64,dm0=\"}\n";
    let error = Given::default()
        .add("m.yaml", config.as_bytes(), None)
        .expect_err("encoded files");
    assert!(error.to_string().contains("m.yaml:7: files in spec.config"), "{error}");
}

#[test]
fn a_machine_config_has_arguments_and_units() {
    let config = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec:\n  kernelArguments: [hugepagesz=1G, hugepages=4]\n  \
                  config:\n    storage:\n      files:\n      - path: /etc/sysctl.d/60-huge.conf\n        contents: {source: \"data:;base64,dm0=\"}\n    \
                  systemd:\n      units:\n      - name: hp.service\n        contents: |\n          [Service]\n          Type=oneshot\n          \
                  ExecStart=/bin/sh -c 'echo 512 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'\n";
    let given = given(&[("m.yaml", config)]);
    assert_eq!(given.boot[0].boot.pages_of(Bytes::gib(1), None), Some(4));
    assert_eq!(given.pool_writes[0].line.pages, 512);
    assert_eq!(
        given.pool_writes[0].line.place,
        "m.yaml:/etc/systemd/system/hp.service:16"
    );
    assert!(
        given.unresolved[0].starts_with("m.yaml:8: files in spec.config"),
        "{:?}",
        given.unresolved
    );
}

/// What a script sets, starts and leaves open.
fn script(text: &str) -> (String, usize, String) {
    let given = given(&[("a.sh", text)]);
    let sysctl = given.sysctl.pairs().map(|(name, value)| format!("{name}={value}"));
    let pools = given.pool_writes.iter().map(|write| {
        let node = write.node.map_or_else(String::new, |node| format!(" on {node}"));
        format!("{}{node}", write.line.pages)
    });
    let policies = given.policies.iter().map(|line| line.value.clone());
    let set: Vec<String> = sysctl.chain(pools).chain(policies).collect();
    let starts = given.guests.len() + given.runs.len() + given.java().len();
    (set.join(", "), starts, given.unresolved.join("\n"))
}

#[test]
fn a_script_sets_what_its_last_writes_say() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    for (text, expected) in [
        ("sysctl -q -w vm.nr_hugepages=8 kernel.shmmax=64\n".to_owned(), "vm.nr_hugepages=8, kernel.shmmax=64, 8"),
        ("N=4\nN=5\necho ${N} > /proc/sys/vm/nr_hugepages 2>/dev/null\n".to_owned(), "vm.nr_hugepages=5, 5"),
        (format!("F={pool}\nprintf '%d\\n' 3 | sudo tee $F >/dev/null"), "3"),
        (format!("#!/bin/sh\nsudo sh -c 'echo 3 > {pool}'"), "3"),
        (format!("#!/bin/sh\nsudo bash -euxc 'echo 3 > {pool}'"), "3"),
        ("sysctl -w vm.nr_hugepages=9\nsudo bash -lc 'sysctl -w vm.nr_hugepages=4'".to_owned(), "vm.nr_hugepages=4, 9, 4"),
        (format!("#!/bin/sh\ntee {pool} <<< 6"), "6"),
        ("echo 2 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages".to_owned(), "2 on 1"),
        ("echo 'vm.nr_hugepages = 7' >> /etc/sysctl.conf".to_owned(), "vm.nr_hugepages=7, 7"),
        (
            "[ -f /sys/kernel/mm/transparent_hugepage/enabled ] && echo always > /sys/kernel/mm/transparent_hugepage/enabled\necho never > /sys/kernel/mm/transparent_hugepage/enabled"
                .to_owned(),
            "never",
        ),
    ] {
        let (set, starts, open) = script(&text);
        assert_eq!((set.as_str(), starts, open.as_str()), (expected, 0, ""), "{text}");
    }
}

#[test]
fn scripts_within_a_script_are_all_read_and_may_call_themselves() {
    let node = |nth| {
        format!(
            "sudo sh -c 'echo {nth} > /sys/devices/system/node/node{nth}/hugepages/hugepages-2048kB/nr_hugepages'\n"
        )
    };
    let text: String = (1..=70).map(node).collect();
    let given = given(&[("a.sh", &text)]);
    assert_eq!((given.pool_writes.len(), given.unresolved.len()), (70, 0));
    let (_, _, open) = script("A='sh -c \"$A\"; echo 1 > /proc/sys/vm/nr_hugepages'\nsh -c \"$A\"\n");
    assert!(open.contains("nothing of the script within it is judged"), "{open}");
}

/// Of a branch, behind a condition, in a function or behind an end, values that differ are not taken.
#[test]
fn what_may_not_run_sets_nothing_for_sure() {
    let differ = |small: &str, large: &str| {
        let text = format!("{small}\n{large}\n");
        let (set, _, open) = script(&text);
        let places = open.matches("whether it runs is not known").count();
        assert_eq!((set.as_str(), places), ("", 2), "{text}: {open}");
    };
    let write = |pages: u32| format!("echo {pages} > /proc/sys/vm/nr_hugepages");
    let (small, large) = (write(16), write(64));
    for condition in [
        "[ $1 = a ] &&",
        "grep -q x /etc/fstab &&",
        "[[ -f /sys/kernel/mm/x && $1 = a ]] &&",
        "test -f /etc/x &&",
        "[ a ] && sudo sh -c true &&",
        "! [ -d /sys/kernel/mm/hugepages ] &&",
    ] {
        differ(&format!("{condition} {small}"), &format!("{condition} {large}"));
    }
    differ(
        &format!("[ $1 = a ] && {{ {small}; }}"),
        &format!("[ $1 = b ] && {{ {large}\n}}"),
    );
    differ(
        &format!("function a {{\n{small}\n}}"),
        &format!("function b()\n{{\n{large}\n}}"),
    );
    differ(&format!("function a\n{{ {small}; }}"), &format!("b() {{ {large}; }}"));
    differ(&format!("if [ -f /etc/x ]; then\n{small}\nexit 0\nfi"), &large);
    differ(
        &format!("if [ -d /sys/x ] && [ $1 = a ]; then {small}; fi"),
        &format!("if [[ -d /sys/x && $1 = b ]]; then {large}; fi"),
    );
    let append = |pages: u32| format!("[ $1 = {pages} ] && echo vm.nr_hugepages={pages} >> /etc/sysctl.conf");
    differ(&append(1), &append(2));
}

#[test]
fn what_fails_or_sets_nothing_leaves_the_rest_sure() {
    let write = "echo 16 > /proc/sys/vm/nr_hugepages\nsysctl -w vm.nr_hugepages=64";
    for before in [
        "[ $(id -u) = 0 ] || { echo root; exit 1; }",
        "case $1 in\n-h) usage; exit 0;;\nesac",
        "usage() { echo x; exit 0; }",
        "mkdir -p /x && cd /x || exit 1",
        "if [ -f /sys/kernel/x ]; then",
        "test -w /proc/sys/vm/nr_hugepages &&",
        "echo 1 > /x &&",
    ] {
        assert_eq!(
            script(&format!("{before}\n{write}\n")).0,
            "vm.nr_hugepages=64, 16, 64",
            "{before}"
        );
    }
    let counts =
        "N=4\n[ $1 = a ] && N=5\nsysctl -w vm.nr_hugepages=$N\nM=6\n(( M = 7 ))\nsysctl -w vm.nr_hugepages=$M\n";
    let (set, _, open) = script(counts);
    assert!(
        set.is_empty() && open.contains("a.sh:3") && open.contains("a.sh:6"),
        "{set}: {open}"
    );
}

#[test]
fn only_an_end_that_runs_for_sure_ends_the_script() {
    let write = "echo 9000 > /proc/sys/vm/nr_hugepages";
    for before in [
        "[ -d /proc/vz ] && exit 0",
        "[ -f /proc/xen/capabilities ] && echo xen && exit 0",
        "[ -d /proc/vz ] && { echo vz; exit 0; }",
        "if [ -d /proc/vz ]; then exit 0; fi",
        "! modprobe vfio-pci && exit 1",
        "! true && exit 1",
        "! [ -d /sys/kernel/mm/hugepages ] && exit 0",
        "if ! [ -d /sys/kernel/mm/hugepages ]; then exit 0; fi",
        "! grep -q pse /proc/cpuinfo && exit 1",
        "mount -t hugetlbfs none /x && exit 0",
        "sysctl -q vm.nr_hugepages && exit 0",
        "sysctl -q vm.nr_hugepages && exec ls",
        "cd /x || exit 1",
        "{\nexit 5\n} &",
        "{ sleep 1; { exit; }; echo x; } 2>&1 | tee log",
        "ls | { read x; exit 1; }",
        "ls | while read x; do\nexit\ndone",
        "echo 8 > /proc/sys/vm/nr_hugepages; { if [ $1 ]; then exit 0; fi; } | cat",
        "(exit 5)",
        "x=$(exit 5)",
        "bash -c 'exit 0'",
        "f() { exit 0; }",
        "case $1 in\n-h) exit;;\nesac",
        "cat <<E\nexit\nE",
        "exec > log",
        "exec 3>&1",
        "{ exit 1 & }",
    ] {
        let (set, _, open) = script(&format!("{before}\n{write}\n"));
        assert!(set.ends_with("9000") && open.is_empty(), "{before}: {set} {open}");
    }
    for before in [
        "exit",
        "true; exit 0",
        "{ exit 1; }",
        "true | cat; exec ls",
        "{ ls & exit; }",
    ] {
        let (set, _, open) = script(&format!("{before}\n{write}\n"));
        assert!(
            set.is_empty() && open.contains("this never runs"),
            "{before}: {set} {open}"
        );
    }
}

#[test]
fn texts_behind_commands_come_where_they_go() {
    let policy = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = "<<E\nvm.nr_hugepages = 6\nE\n";
    for (text, expected) in [
        (
            format!(
                "cat <<E > /etc/sysctl.d/9.conf && sysctl -p /etc/sysctl.d/9.conf{}",
                &text[3..]
            ),
            "vm.nr_hugepages=6, 6",
        ),
        (
            format!(
                "cat - {}",
                text.replacen("<<E", "<<E | sudo tee /etc/sysctl.d/9.conf", 1)
            ),
            "vm.nr_hugepages=6, 6",
        ),
        (format!("sudo bash <<'E'\necho never > {policy}\nE\n"), "never"),
        (format!("sudo -i <<E\necho never > {policy}\nE\n"), "never"),
        (format!("echo 'echo never > {policy}' | sudo sh -s\n"), "never"),
        (
            format!("ssh host <<E\necho never > {policy}\nE\necho always > {policy}\n"),
            "always",
        ),
        (
            format!("cd {}\necho never > enabled\n", policy.trim_end_matches("/enabled")),
            "never",
        ),
        (
            "cd /sys/kernel/mm/ && cd x/../transparent_hugepage && echo never > ./enabled\n".to_owned(),
            "never",
        ),
        (
            format!("if [ $1 ]; then\ncd /sys/x\nfi\necho never > enabled\necho never > {policy}\n"),
            "never",
        ),
    ] {
        let (set, _, open) = script(&text);
        assert_eq!((set.as_str(), open.as_str()), (expected, ""), "{text}");
    }
    assert!(
        script("sudo bash <<E\n\necho $1 > /proc/sys/vm/nr_hugepages\nE\n")
            .2
            .starts_with("a.sh:3")
    );
    assert!(
        script("envsubst <<E | tee /etc/sysctl.d/9.conf\nvm.nr_hugepages=$N\nE\n")
            .2
            .starts_with("a.sh:2")
    );
}

#[test]
fn boot_parameters_that_scripts_set() {
    for text in [
        "sudo grubby --update-kernel=ALL --args=\"hugepagesz=1G hugepages=4\"\n",
        "grubby --remove-args=hugepages --args 'hugepagesz=1G hugepages=4'\n",
        "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4\"' >> /etc/default/grub\n",
    ] {
        let boot = given(&[("a.sh", text)]).boot;
        let pages: Vec<u64> = boot[0].boot.pools.iter().map(|pool| pool.pages.total()).collect();
        assert_eq!((boot[0].place.as_str(), &pages[..]), ("a.sh:1", &[4][..]), "{text}");
    }
    for text in [
        "sed -i 's/quiet/quiet hugepages=4/' /etc/default/grub\n",
        "rpm-ostree kargs --append=hugepages=4\n",
        "[ $1 ] && grubby --args=hugepages=4\n",
    ] {
        let given = given(&[("a.sh", text)]);
        assert_eq!((given.boot.len(), given.unresolved.len()), (0, 1), "{text}");
    }
    let edits =
        "sed -i '/nr_hugepages/d' /etc/sysctl.conf\ngrubby --remove-args=hugepages\nsysctl -w vm.nr_hugepages=4\n";
    assert_eq!(script(edits), ("vm.nr_hugepages=4, 4".to_owned(), 0, String::new()));
}

#[test]
fn a_shell_makes_a_script_of_whatever_it_prints() {
    let set = "sysctl -w vm.nr_hugepages=16\n";
    for text in [
        "docker run -d --name db postgres:16\n",
        "cat <<E | kubectl apply -f -\napiVersion: v1\nkind: Pod\nE\n",
        "cat > u <<E\n#cloud-config\nruncmd:\n  - sysctl -w vm.nr_hugepages=4\nE\n",
        "cat > c.yml <<E\nservices:\n  db:\n    image: mariadb\nE\n",
        "virsh define /dev/stdin <<E\n<domain>\n</domain>\nE\n",
    ] {
        let text = format!("#!/bin/bash\n{set}{text}");
        assert_eq!(kind("x", &text), FileKind::Script, "{text}");
        let given = given(&[("x", &text)]);
        assert_eq!((given.pool_writes.len(), given.garbled.len()), (1, 0), "{text}");
        assert_eq!(given.runs.len(), usize::from(text.contains("docker run")));
    }
    assert_eq!(kind("x", "#!/bin/bash\ndocker run postgres:16\n"), FileKind::Compose);
    for open in ["echo $(date", "cat <<E\n", "echo 'x"] {
        let (set, _, said) = script(&format!("#!/bin/sh\n{set}{open}\n"));
        assert!(
            set.is_empty() && said.contains("nothing of the script is judged"),
            "{open}: {said}"
        );
    }
}

#[test]
fn a_long_script_takes_no_longer_for_each_line() {
    let began = std::time::Instant::now();
    let lines = |line: fn(usize) -> String| (0..20_000).map(line).collect::<String>();
    let starts = format!(
        "{}{}",
        lines(|nth| format!("A{nth}=1\n")),
        lines(|_| "java -version\n".to_owned())
    );
    super::script::read("a.sh", &starts);
    super::script::read("a.sh", &lines(|nth| format!("[ a ] && echo 1 > /proc/sys/vm/x{nth}\n")));
    super::script::read("a.sh", &lines(|_| "((a) ".to_owned()));
    let seconds = began.elapsed().as_secs();
    assert!(seconds < 30, "{seconds} s");
}

#[test]
fn values_make_no_command_longer_than_the_script_by_much() {
    let long = format!("A={}\nB=nr_hugepages\n", "a".repeat(4000));
    let (_, _, open) = script(&format!("{long}sysctl -w \"vm.$B={}\"\n", "$A".repeat(50_000)));
    assert!(open.starts_with("a.sh:3") && open.len() < 1 << 20, "{}", open.len());
}

#[test]
fn what_only_a_run_of_a_script_shows_is_said() {
    for (text, place, words) in [
        ("echo $1 > /proc/sys/vm/nr_hugepages", "a.sh:1", "$1"),
        (
            "N=$(nproc)\nsysctl -w vm.nr_hugepages=$N",
            "a.sh:2",
            "vm.nr_hugepages=${N}",
        ),
        (
            "for n in $NODES\ndo\necho 4 > /sys/devices/system/node/node$n/hugepages/hugepages-2048kB/nr_hugepages\ndone",
            "a.sh:3",
            "node${n}",
        ),
        (
            "case $1 in\nstart) echo never > /sys/kernel/mm/transparent_hugepage/enabled ;;\nstop) echo always > /sys/kernel/mm/transparent_hugepage/enabled ;;\nesac",
            "a.sh:2",
            "whether it runs is not known",
        ),
        (
            "exec qemu-system-x86_64 -m $MEM -mem-path /dev/hugepages",
            "a.sh:1",
            "-m ${MEM}",
        ),
    ] {
        let (set, starts, open) = script(&format!("{text}\n"));
        assert_eq!((set.as_str(), starts), ("", 0), "{text}");
        assert!(open.starts_with(place) && open.contains(words), "{text}: {open}");
    }
}

#[test]
fn a_script_starts_known_programs_behind_launchers() {
    for (text, starts) in [
        ("Q=/usr/bin/qemu-system-x86_64\nsudo -u vm numactl -m 0 $Q -m 4G\n", 1),
        (
            "sysctl -w vm.nr_hugepages=8\nD=data\ndocker run -v $PWD:/x -e A=$B postgres:17\n",
            1,
        ),
        (
            "sysctl -w vm.nr_hugepages=8\nif true; then exec java -Xmx4g A; else exec java -Xmx8g A; fi\n",
            1,
        ),
        ("sysctl -w vm.nr_hugepages=8\npkill java\nwhich qemu-system-x86_64\n", 0),
    ] {
        assert_eq!(script(text).1, starts, "{text}");
    }
    let bound = given(&[(
        "a.sh",
        "#!/bin/sh\nset -e\nexec numactl -m 1 qemu-system-x86_64 -m 4G\n",
    )])
    .guests
    .remove(0);
    assert_eq!(bound.bound[0].as_ref().map(ToString::to_string).as_deref(), Some("1"));
    assert_eq!(
        kind("x", "#!/bin/sh\nexport A=1\necho 4 > /proc/sys/vm/nr_hugepages\n"),
        FileKind::Script
    );
    assert!(FileKind::of("a.sh", "#!/bin/sh\necho hello\n").is_err());
}

#[test]
fn a_function_starts_all_of_its_guests_and_a_branch_one_of_them() {
    let qemu =
        |name: &str| format!("sudo taskset 3 $DIR/qemu-system-x86_64 -name {name} -m 1G -mem-path /dev/hugepages &\n");
    let (one, two) = (qemu("a"), qemu("b"));
    let count = |text: &str| given(&[("vms.sh", &format!("#!/bin/sh\n{text}"))]).guests.len();
    assert_eq!(count(&format!("start() {{\n{one}{two}}}\nstart\n")), 2);
    assert_eq!(
        count(&format!("function start {{\n{one}sleep 5\n{one}}}\nstart\n")),
        1,
        "started anew"
    );
    let branch = format!("start() {{\nif [ -n \"$1\" ]; then\n{one}else\n{two}fi\n}}\nstart\n");
    assert_eq!(count(&branch), 1);
    let apart = format!("first() {{\n{one}}}\nsecond() {{\n{two}}}\ncase $1 in 1) first;; *) second;; esac\n");
    assert_eq!(count(&apart), 1);
}

#[test]
fn files_of_one_server_are_one_server_s_whatever_their_order() {
    let postgres = [
        (
            "db/postgresql.conf",
            "shared_buffers = 1GB\ninclude_dir 'conf.d'\nhuge_pages = on\n",
        ),
        ("db/conf.d/b.conf", "shared_buffers = 3GB\nhuge_pages = off\n"),
        ("db/conf.d/a.conf", "shared_buffers = 2GB\n"),
        ("db/postgresql.auto.conf", "work_mem = 8MB\nhuge_pages = try\n"),
    ];
    let mysql = [
        ("my.cnf", "[mysqld]\nlarge-pages\n!includedir /etc/mysql/conf.d/\n"),
        ("conf.d/a.cnf", "[mariadb]\ninnodb_buffer_pool_size = 32G\n"),
    ];
    let servers = |kind, files: &[(&str, &str)]| {
        let given = self::given(files);
        let not_read: Vec<String> = given.not_read().collect();
        (given.servers(kind), not_read)
    };
    let last = |server: &super::Server, name| server.settings.last(name).map(|set| set.value.clone());
    for turn in 0..4 {
        let mut files = postgres;
        files.rotate_left(turn);
        let (found, not_read) = servers(Kind::Postgres, &files);
        assert_eq!((found.len(), not_read.len()), (1, 0), "{found:?}");
        let of = |name| last(&found[0], name);
        let expected = ["3GB", "try", "8MB"].map(|value| Some(value.to_owned()));
        assert_eq!(["shared_buffers", "huge_pages", "work_mem"].map(of), expected);
    }
    let (found, _) = servers(Kind::Postgres, &postgres[..3]);
    assert_eq!(last(&found[0], "huge_pages").as_deref(), Some("on"), "where it stands");
    let (found, not_read) = servers(Kind::Postgres, &postgres[..1]);
    assert_eq!(
        (found.len(), last(&found[0], "shared_buffers").as_deref()),
        (1, Some("1GB"))
    );
    assert!(
        not_read[0].starts_with("db/postgresql.conf:2: include_dir conf.d, which is not among"),
        "{not_read:?}"
    );
    for files in [mysql, [mysql[1], mysql[0]]] {
        let (found, not_read) = servers(Kind::Mysql, &files);
        assert!(
            found.len() == 1 && found[0].asks() && found[0].is_mariadb && not_read.is_empty(),
            "{found:?}"
        );
    }
    let each_other = [
        ("a/x.cnf", "[mysqld]\nport = 1\n!include y.cnf\n"),
        ("a/y.cnf", "[mysqld]\nport = 2\n!include x.cnf\n"),
    ];
    assert_eq!(servers(Kind::Mysql, &each_other).0.len(), 2);
}

#[test]
fn files_of_sysctl_d_hold_by_name() {
    let files = [
        ("etc/sysctl.d/99-b.conf", "vm.nr_hugepages = 2\n"),
        ("etc/sysctl.d/10-a.conf", "vm.nr_hugepages = 1\n"),
    ];
    let last = |files: &[(&str, &str)]| given(files).sysctl.last("vm.nr_hugepages").map(|set| set.value.clone());
    assert_eq!(last(&files).as_deref(), Some("2"));
    let others = [files[0], ("sysctl.conf", "vm.nr_hugepages = 3\n")];
    assert_eq!(last(&others).as_deref(), Some("3"), "as given");
}

#[test]
fn pages_that_units_and_lines_of_tmpfiles_d_write_at_boot_are_pools() {
    for (path, text) in [
        (
            "a.service",
            "[Service]\nExecStart=/bin/sh -c 'echo 3000 > /proc/sys/vm/nr_hugepages'\n",
        ),
        (
            "a.service",
            "[Service]\nExecStartPre=/sbin/sysctl -w vm.nr_hugepages=3000\nExecStart=/bin/app\n",
        ),
        (
            "tmpfiles.d/a.conf",
            "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 3000\n",
        ),
        (
            "tuned.conf",
            "[sysfs]\n/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages=3000\n",
        ),
    ] {
        let given = self::given(&[(path, text)]);
        let pages: Vec<u64> = given.pool_writes.iter().map(|write| write.line.pages).collect();
        assert!(pages == [3000] && given.sets_pools(), "{text}: {pages:?}");
    }
    let defrag = given(&[(
        "tuned.conf",
        "[vm]\ntransparent_hugepages=madvise\ntransparent_hugepage.defrag=never\n",
    )]);
    let policies: Vec<&str> = defrag.policies.iter().map(|set| set.value.as_str()).collect();
    assert_eq!(policies, ["madvise"]);
}

#[test]
fn what_a_machine_shows_is_no_configuration() {
    let error =
        FileKind::of("meminfo.txt", "HugePages_Total:     512\nHugePages_Free:      512\n").expect_err("no kind");
    assert!(error.to_string().contains("give it with --root"), "{error}");
}

#[test]
fn a_byte_order_mark_is_a_fault_where_the_program_does_not_skip_it() {
    let marked = |path: &str, text: &str| given(&[(path, &format!("\u{feff}{text}"))]).garbled;
    for (path, text) in [
        ("postgresql.conf", "shared_buffers = 8GB\nhuge_pages = on\n"),
        ("my.cnf", "[mysqld]\nlarge-pages\n"),
        ("sysctl.d/9.conf", "vm.nr_hugepages = 8\n"),
        ("limits.conf", "* - memlock 8\n"),
        ("default/grub", "GRUB_CMDLINE_LINUX=\"hugepages=8\"\n"),
    ] {
        let garbled = marked(path, text);
        assert!(
            garbled.len() == 1 && garbled[0].place == format!("{path}:1"),
            "{path}: {garbled:?}"
        );
        assert_eq!(given(&[(path, text)]).garbled, [], "{path}");
    }
    for (path, text) in [
        ("sysctl.d/9.conf", "# my own\nvm.nr_hugepages = 8\n"),
        ("limits.conf", "\n* - memlock 8\n"),
    ] {
        assert_eq!(marked(path, text), [], "{path}");
    }
    let unit = marked("a.service", "[Service]\nExecStart=/bin/app\n");
    assert!(unit.iter().all(|why| !why.why.contains("byte order mark")), "{unit:?}");
}
