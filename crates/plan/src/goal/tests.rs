//! Goals read what users type, and refuse the rest by place, key and what to write.

use super::{Goal, Hypervisor, JvmKind, JvmPages, Want};
use model::Bytes;

fn goal(text: &str) -> Goal {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    let error = text.parse::<Goal>().expect_err(text).to_string();
    assert!(error.starts_with("goal `") && error.contains("expected "), "{error}");
    error
}

#[test]
fn goals_are_read_as_typed_and_told_as_typed() {
    for text in [
        "pool:2M=16",
        "pool:1G=4,node=0",
        "pool:2M=16,1G=2,group=kvm,mount=/dev/hugepages",
        "thp:madvise",
        "thp:madvise,defrag=defer+madvise,khugepaged.max_ptes_none=0,mthp-64K=always",
        "jvm:heap=3.5g,user=jboss",
        "postgres:/etc/postgresql/15/main/postgresql.conf,pages=1G",
        "vm:64G,pages=1G",
        "redis",
        "oracle:sga=1G,user=Oracle_1",
        "placement:nginx,cpus=0-3+8,memory=0,by=cpuset",
    ] {
        assert_eq!(goal(text).text, text);
    }
    assert_eq!(goal("thp=madvise"), goal("thp:madvise"));
}

#[test]
fn defaults_are_the_usual_ones() {
    let Want::Jvm(jvm) = goal("jvm:heap=3.5g,kind=openj9,service=app").want else {
        panic!("a JVM")
    };
    assert_eq!(
        (jvm.heap, jvm.kind, jvm.pages),
        (Bytes(7 << 29), Some(JvmKind::OpenJ9), JvmPages::Default)
    );
    assert_eq!(jvm.service.as_deref(), Some("app.service"));
    let Want::Vm(vm) = goal("vm:64G").want else {
        panic!("a machine")
    };
    assert_eq!(
        (vm.page, vm.hypervisor, vm.count),
        (Bytes::mib(2), Hypervisor::Libvirt, 1)
    );
}

#[test]
fn what_is_wrong_is_named_with_its_key() {
    for (text, parts) in [
        ("pool", &["page size and a number of pages"][..]),
        ("pool:2M=many", &["2M", "`many`", "such as 16"]),
        ("pool:2M=16,node=x", &["node", "`x`"]),
        ("placement:nginx", &["cpus", "0+2+8-11"]),
        ("placement:nginx,cpus=3-1", &["cpus", "`3-1`"]),
        ("placement:nginx,cpus=0,2", &["2", "KEY=VALUE"]),
        ("placement:nginx,cpus=0,by=hand", &["by", "affinity or cpuset"]),
        ("pool:2M=16,2M=17", &["2M", "once"]),
        ("pool:2M=16,color=red", &["color", "SIZE=PAGES, node"]),
        ("jvm:user=jboss", &["heap", "6g"]),
        ("jvm:heap=6", &["heap", "`6`"]),
        ("jvm:heap=6g,kind=zing", &["kind", "openj9"]),
        (
            "jvm:heap=6g,kind=openj9,collector=g1",
            &["collector", "`g1`", "-Xgcpolicy"],
        ),
        ("postgres:etc/pg.conf", &["file", "absolute path"]),
        ("vm:64G,hypervisor=xen", &["hypervisor", "cloud-hypervisor"]),
        ("thp=madvise,mthp-64K=on", &["mthp-64K", "inherit"]),
        ("bigpages", &["bigpages", "pool:2M=16"]),
        ("redis:pid=1", &["pid", "`redis` alone"]),
        ("cassandra", &["jvm:heap=SIZE"]),
        ("mongod", &["thp=always,defrag=defer+madvise"]),
        ("", &["pool:2M=16"]),
    ] {
        let error = refused(text);
        for part in parts {
            assert!(error.contains(part), "{text}: no `{part}` in {error}");
        }
    }
}

#[test]
fn a_file_holds_goals_as_texts_and_as_tables() {
    let text = "goals = [\"pool:2M=16\", \"thp=madvise\"]\n[[goal]]\nfor = \"jvm\"\nheap = \"6g\"\nuser = \"jboss\"\njdk = 17\n";
    let goals = Goal::from_toml("site.toml", text).expect("goals");
    let texts: Vec<&str> = goals.iter().map(|goal| goal.text.as_str()).collect();
    assert_eq!(texts, ["jvm:heap=6g,jdk=17,user=jboss", "pool:2M=16", "thp:madvise"]);
    assert_eq!(goals[0], goal(texts[0]), "a table is what one can type");
}

#[test]
fn a_file_s_error_names_the_file_and_the_goal_s_number() {
    for (text, parts) in [
        ("goals = [", &["site.toml", "TOML"][..]),
        ("", &["site.toml", "at least one goal"]),
        ("settings = 1", &["site.toml: settings", "[[goal]]"]),
        (
            "goals = [\"pool:2M=16\", \"pool:2M=x\"]",
            &["site.toml: goals 2", "`x`"],
        ),
        ("goals = [7]", &["goals 1", "integer"]),
        ("[[goal]]\nfor = \"jvm\"\nheap = [1]", &["goal 1: heap", "array"]),
        (
            "[[goal]]\nfor = \"jvm\"\nheap = \"6g\"\nuser = \"a,b\"",
            &["goal 1: user", "commas"],
        ),
        ("[[goal]]\nheap = \"6g\"", &["goal 1", "pool:2M=16"]),
    ] {
        let error = Goal::from_toml("site.toml", text).expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: no `{part}` in {error}");
        }
    }
}
