//! What units and scripts start, with all that it gets.

use super::{Start, policy};
use crate::config::Given;
use model::Bytes;

/// Files of a service: the heap of its JVM in GiB, whether it asks for pages of a pool, and what is refused.
fn java(unit: &str, variables: &str) -> (Option<Bytes>, bool, usize) {
    let mut given = Given::default();
    let text = format!("[Service]\n{unit}\n");
    given.add("a.service", text.as_bytes(), None).expect("a unit");
    given
        .add("/etc/default/a", variables.as_bytes(), None)
        .expect("variables");
    let java = given.java().remove(0);
    (java.jvm.heap_max, java.jvm.large_pages, given.refused().len())
}

#[test]
fn variables_of_a_service_come_to_its_jvm_as_systemd_has_them() {
    let own = "ExecStart=/usr/bin/java $OPTS -Xmx8g -XX:+UseLargePages -jar a.jar -Xmx1g";
    for (unit, gib, asks) in [
        (own.to_owned(), 8, true),
        (format!("Environment=_JAVA_OPTIONS=-Xmx2g\n{own}"), 2, true),
        (format!("Environment=JAVA_TOOL_OPTIONS=-Xmx2g JDK_JAVA_OPTIONS=-Xmx3g\n{own}"), 8, true),
        (format!("Environment=_JAVA_OPTIONS=-Xmx2g\nUnsetEnvironment=_JAVA_OPTIONS\n{own}"), 8, true),
        (format!("Environment=_JAVA_OPTIONS=-Xmx2g\nEnvironment=_JAVA_OPTIONS=-Xms1g\n{own}"), 8, true),
        (format!("Environment=_JAVA_OPTIONS=-Xmx2g\nEnvironmentFile=/etc/default/a\n{own}"), 3, true),
        ("Environment=HEAP=8g\nExecStart=java -Xmx${HEAP} -XX:+UseLargePages -jar a.jar".to_owned(), 8, true),
        (
            "Environment=\"OPTS=-Xmx8g -XX:OnError='kill -9 %%p' -XX:+UseLargePages\"\nExecStart=java $OPTS -jar a.jar".to_owned(),
            8,
            true,
        ),
        (
            "Environment=\"JAVA_TOOL_OPTIONS=-Xmx8g -XX:OnError='kill -9 %%p' -XX:+UseLargePages\"\nExecStart=java -jar a.jar".to_owned(),
            8,
            true,
        ),
        ("Environment=\"OPENJ9_JAVA_OPTIONS=-Xmx8g -Xlp\"\nExecStart=java -jar a.jar".to_owned(), 8, true),
    ] {
        let expected = (Some(Bytes::gib(gib)), asks, 0);
        assert_eq!(java(&unit, "_JAVA_OPTIONS=-Xmx3g\n"), expected, "{unit}");
    }
    for (unit, expected) in [
        ("ExecStart=java -Xmx${HEAP} -XX:+UseLargePages A", (None, true, 1)),
        (
            "EnvironmentFile=/etc/b\nExecStart=java -Xmx${HEAP} -XX:+UseLargePages A",
            (None, true, 0),
        ),
        (
            "PassEnvironment=HEAP\nExecStart=java -Xmx${HEAP} -XX:+UseLargePages A",
            (None, true, 0),
        ),
        ("ExecStart=java $OPTS -XX:+UseLargePages A", (None, true, 0)),
        (
            "ExecStart=java -Xmx1g ${OPTS} -XX:+UseLargePages A",
            (Some(Bytes::gib(1)), false, 0),
        ),
        (
            "Environment=O=-Xmx2g\nExecStart=:java -Xmx1g $O -XX:+UseLargePages A",
            (Some(Bytes::gib(1)), false, 0),
        ),
        ("Environment=HEAP=2g\nExecStart=:java -Xmx${HEAP} A", (None, false, 1)),
        ("Environment=HEAP=8g\nExecStart=java -Xmx$HEAP A", (None, false, 1)),
        (
            "Environment=OPTS=-Xmx8g -XX:+UseLargePages -ea\nExecStart=java $OPTS A",
            (Some(Bytes::gib(8)), false, 2),
        ),
        (
            "Environment=\"OPTS=-Xmx8g -XX:+UseLargePages\"\nExecStart=java ${OPTS} A",
            (None, false, 1),
        ),
    ] {
        assert_eq!(java(unit, "A=1\n"), expected, "{unit}");
    }
}

#[test]
fn options_of_the_launcher_in_a_variable_of_the_jvm_are_refused() {
    let refused = |variable: &str| {
        let unit = format!("Environment=\"{variable}\"\nExecStart=java -Xmx1g A");
        java(&unit, "A=1\n").2
    };
    for words in [
        "-cp /opt/a",
        "--add-opens java.base/a=ALL-UNNAMED -Xss1m",
        "-jar a.jar",
        "@/etc/a",
        "-server -cp b",
        "-Xss1m b",
    ] {
        assert_eq!(refused(&format!("JAVA_TOOL_OPTIONS={words}")), 1, "{words}");
        assert_eq!(refused(&format!("_JAVA_OPTIONS={words}")), 1, "{words}");
    }
    for fine in [
        "JAVA_TOOL_OPTIONS=--add-opens=java.base/a=ALL-UNNAMED -Da='b c' -Xss1m",
        "JDK_JAVA_OPTIONS=-cp /opt/a -server",
        "OPTS=-cp /opt/a",
    ] {
        assert_eq!(refused(fine), 0, "{fine}");
    }
}

#[test]
fn an_option_is_where_its_word_stands() {
    for command in [
        "/usr/bin/java $OPTS -Xss1m -jar a.jar",
        "/bin/sh -c 'exec java $OPTS -Xss1m -jar a.jar'",
    ] {
        let unit = format!(
            "[Service]\nEnvironment=\"JAVA_TOOL_OPTIONS=-cp /a -XX:+UseLargePages\"\nEnvironment=\"OPTS=-Xmx8g\" \"OTHER=-Xss1m\"\n\
                ExecStart={command}\n"
        );
        let mut given = Given::default();
        given.add("a.service", unit.as_bytes(), None).expect("a unit");
        let java = given.java().remove(0);
        let places = ["-XX:+UseLargePages", "-Xmx8g", "-Xss1m"].map(|option| java.place_of(option));
        assert_eq!(places, ["a.service:2", "a.service:3", "a.service:4"]);
        let refused = given.refused();
        assert_eq!((refused.len(), refused[0].place.as_str()), (1, "a.service:2"));
    }
}

#[test]
fn a_jvm_in_the_shell_of_a_service_is_found() {
    for unit in [
        "ExecStart=/bin/sh -c \"exec java -Xmx8g -XX:+UseLargePages -jar a.jar\"",
        "ExecStart=-/bin/bash -lc 'cd /opt && exec /opt/java/bin/java -Xmx8g -XX:+UseLargePages -jar a.jar'",
        "ExecStart=@/bin/sh sh -c 'java -Xmx8g -XX:+UseLargePages A >>/var/log/a 2>&1'",
        "Environment=HEAP=8g\nExecStart=/bin/sh -c 'exec java -Xmx$HEAP -XX:+UseLargePages A'",
        "Environment=HEAP=8g\nExecStart=/bin/sh -c 'exec java -Xmx${HEAP} -XX:+UseLargePages A'",
        "Environment=HEAP=8g\nExecStart=/bin/sh -c 'exec java -Xmx$${HEAP} -XX:+UseLargePages A'",
        "Environment=HEAP=8g\nExecStart=:/bin/sh -c 'exec java -Xmx${HEAP} -XX:+UseLargePages A'",
        "Environment=\"OPTS=-Xmx8g -XX:+UseLargePages\"\nExecStart=/bin/sh -c 'exec java $OPTS A'",
        "Environment=\"JAVA_TOOL_OPTIONS=-Xmx8g -XX:+UseLargePages\"\nExecStart=/bin/sh -c 'exec java A'",
        "ExecStart=/bin/sh -c 'JAVA_TOOL_OPTIONS=-Xmx8g exec java -XX:+UseLargePages A'",
        "ExecStart=/usr/bin/env bash -c 'H=8g; java -Xmx$$H -XX:+UseLargePages A'",
    ] {
        assert_eq!(java(unit, "A=1\n"), (Some(Bytes::gib(8)), true, 0), "{unit}");
    }
}

#[test]
fn a_later_value_of_a_script_replaces_one_to_which_it_does_not_add() {
    let heap = |text: &str| {
        let mut given = Given::default();
        given.add("setenv.sh", text.as_bytes(), None).expect("variables");
        given.java().remove(0).jvm.heap_max
    };
    let first = "JAVA_OPTS=-Xmx4g\n";
    for more in ["JAVA_OPTS=\"$JAVA_OPTS -Xms1g\"", "JAVA_OPTS+=' -Xms1g'"] {
        assert_eq!(heap(&format!("{first}{more}\n")), Some(Bytes::gib(4)), "{more}");
    }
    assert_eq!(heap(&format!("{first}JAVA_OPTS=-Xms1g\n")), None);
}

#[test]
fn the_last_policy_of_numactl_holds() {
    let nodes = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        policy(&words).map(|nodes| nodes.map(|nodes| nodes.to_string()))
    };
    let on = |nodes: &str| Some(Some(nodes.to_owned()));
    for line in [
        "-N all -m 0 postgres",
        "-m0 java",
        "--cpunodebind all --membind 0 -- java",
        "-N1 -C 2-3 --membind=0 java -m 1",
    ] {
        assert_eq!(nodes(line), on("0"), "{line}");
    }
    assert_eq!(nodes("--membind=0-1 java"), on("0-1"));
    for line in ["-i all java", "-l java", "-m all java", "--preferred 1 java"] {
        assert_eq!(nodes(line), Some(None), "{line}");
    }
    for line in ["-N 0 java -m 1", "java"] {
        assert_eq!(nodes(line), None, "{line}");
    }
    let started = |line: &str| {
        let words = line.split(' ').map(str::to_owned).collect();
        let start = Start {
            words,
            ..Start::default()
        };
        start.nodes().map(|nodes| nodes.to_string())
    };
    let by_systemd = "numactl --membind=0 -/usr/bin/numactl";
    for (own, nodes) in [("--membind=1", Some("1")), ("-N 1", Some("0")), ("-i all", None)] {
        assert_eq!(
            started(&format!("{by_systemd} {own} postgres")).as_deref(),
            nodes,
            "{own}"
        );
    }
}

/// HotSpot takes a quarter of the memory that it is started with, or the part that an option names: in 4 GiB and 75 %, JDK 25 has
/// MaxHeapSize=3221225472, and JDK 17 of 200 MiB 104857600 with both.
#[test]
fn the_heap_of_a_jvm_may_be_a_part_of_its_memory() {
    let pod = |options: &str, limits: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: temurin\n    env: [{{name: JAVA_TOOL_OPTIONS, value: \"{options}\"}}]\n    \
             resources: {{limits: {{{limits}}}}}\n"
        )
    };
    let heap = |path: &str, text: &str| {
        let mut given = Given::default();
        given.add(path, text.as_bytes(), None).expect(text);
        let in_pod = given.containers().find_map(|own| own.java.clone());
        let java = in_pod.unwrap_or_else(|| given.java().remove(0));
        (java.jvm.heap_max, java.heap().value)
    };
    let large = "-XX:+UseLargePages";
    for (options, limits, mib, shown) in [
        (
            "-XX:MaxRAMPercentage=75",
            "memory: 4Gi",
            Some(3072),
            "4Gi, of which the heap is 75 %",
        ),
        (
            "-XX:MaxRAMPercentage=12.5",
            "memory: 4Gi",
            Some(512),
            "4Gi, of which the heap is 12.5 %",
        ),
        (
            "-XX:MaxRAMFraction=2",
            "memory: 4Gi",
            Some(2048),
            "4Gi, of which the heap is 50 %",
        ),
        (
            "-Xms1g",
            "memory: 4Gi",
            Some(1024),
            "4Gi, of which the heap is a quarter",
        ),
        (
            "-XX:MaxRAM=2g",
            "memory: 4Gi",
            Some(512),
            "4Gi, of which the heap is a quarter",
        ),
        ("-Xms1g", "memory: 200Mi", Some(100), "200Mi, of which the heap is 100M"),
        (
            "-XX:MaxRAMPercentage=75",
            "memory: 200Mi",
            Some(100),
            "200Mi, of which the heap is 100M",
        ),
        ("-Xms1g", "memory: 300Mi", Some(125), "300Mi, of which the heap is 125M"),
        (
            "-Xms1g",
            "memory: 256Gi",
            Some(30 << 10),
            "256Gi, of which the heap is 30G",
        ),
        (
            "-XX:+UseZGC",
            "memory: 256Gi",
            Some(32 << 10),
            "256Gi, of which the heap is 32G",
        ),
        (
            "-XX:MaxRAMPercentage=75",
            "memory: 256Gi",
            Some(192 << 10),
            "256Gi, of which the heap is 75 %",
        ),
        ("-XX:MaxRAMPercentage=75 -Xmx1g", "memory: 4Gi", Some(1024), "-Xmx1g"),
        ("-XX:MaxRAMPercentage=75", "cpu: 1", None, "no -Xmx"),
        (
            "-XX:MaxRAMPercentage=75 -XX:-UseContainerSupport",
            "memory: 4Gi",
            None,
            "no -Xmx",
        ),
    ] {
        let read = heap("p.yaml", &pod(&format!("{large} {options}"), limits));
        assert_eq!(read, (mib.map(Bytes::mib), shown.to_owned()), "{options} {limits}");
    }
    let half = format!("{large} -XX:MaxRAMPercentage=50");
    for (path, text) in [
        (
            "a.service",
            format!("[Service]\nExecStart=java {half} -jar a.jar\nMemoryMax=4G\n"),
        ),
        (
            "values.yaml",
            format!("javaOpts: \"{half}\"\nresources:\n  limits: {{memory: 4Gi, hugepages-2Mi: 1Gi}}\n"),
        ),
        (
            "compose.yaml",
            format!("services:\n  a:\n    image: app\n    command: java {half} -jar a.jar\n    mem_limit: 4g\n"),
        ),
        (
            "run.sh",
            format!("#!/bin/sh\ndocker run -m 4g -e JAVA_TOOL_OPTIONS='{half}' app\n"),
        ),
    ] {
        assert_eq!(heap(path, &text).0, Some(Bytes::gib(2)), "{path}");
    }
}

#[test]
fn start_files_of_known_programs_make_the_heap_of_a_variable() {
    let heap = |path: &str, text: &str| {
        let mut given = Given::default();
        given.add(path, text.as_bytes(), None).expect(text);
        let java = given.java().remove(0);
        let set = java.heap();
        (java.jvm.heap_max, set.place)
    };
    for (path, text, place) in [
        (
            "solr.in.sh",
            "SOLR_HEAP=\"8g\"\nGC_TUNE=\"-XX:+UseLargePages\"\n",
            "solr.in.sh:1",
        ),
        (
            "hadoop-env.sh",
            "export HADOOP_HEAPSIZE_MAX=8192\nexport HADOOP_OPTS=\"-XX:+UseLargePages\"\n",
            "hadoop-env.sh:1",
        ),
        (
            "hbase-env.sh",
            "export HBASE_HEAPSIZE=8G\nexport HBASE_OPTS=\"-XX:+UseLargePages\"\n",
            "hbase-env.sh:1",
        ),
        (
            "compose.yaml",
            "services:\n  mc:\n    image: itzg/minecraft-server:java21\n    environment:\n      MEMORY: 8G\n      JVM_XX_OPTS: \"-XX:+UseLargePages\"\n",
            "compose.yaml:5",
        ),
    ] {
        assert_eq!(heap(path, text), (Some(Bytes::gib(8)), place.to_owned()), "{path}");
    }
    // An option goes before it, and a variable of that name is another program's elsewhere.
    let both = "SOLR_HEAP=8g\nSOLR_JAVA_MEM=\"-Xmx2g -XX:+UseLargePages\"\n";
    assert_eq!(heap("solr.in.sh", both).0, Some(Bytes::gib(2)));
    let other = "services:\n  a:\n    image: app\n    environment: {MEMORY: 8G, JAVA_OPTS: \"-XX:+UseLargePages\"}\n";
    assert_eq!(heap("compose.yaml", other).0, None);
}
