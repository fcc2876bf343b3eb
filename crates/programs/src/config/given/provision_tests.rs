//! What is read of files of tools that set machines up.

use super::{FileKind, Given};

fn given(path: &str, text: &str) -> Given {
    let mut given = Given::default();
    let kind = given.add(path, text.as_bytes(), None);
    assert_eq!(kind, Ok(FileKind::Provision), "{path}");
    given
}

/// `LINE NAME=VALUE` of each sysctl setting.
fn sysctl(text: &str) -> Vec<String> {
    let given = given("f", text);
    let line = |place: &str| place.rsplit(':').next().unwrap_or_default().to_owned();
    let all = given.sysctl.iter();
    all.map(|set| format!("{} {}={}", line(&set.place), set.name, set.value))
        .collect()
}

#[test]
fn kernel_arguments_of_one_role_of_tripleo_are_a_boot_line() {
    let role = |name: &str, words: &str| format!("  {name}Parameters:\n    KernelArgs: \"{words}\"\n");
    let roles = role("ComputeOvsDpdk", "hugepagesz=1G hugepages=64") + &role("Compute", "hugepages=8");
    let given = given("env.yaml", &format!("parameter_defaults:\n{roles}"));
    let places: Vec<&str> = given.boot.iter().map(|line| &*line.place).collect();
    assert_eq!(places, ["env.yaml:3"]);
    assert_eq!(given.unresolved.len(), 1);
}

#[test]
fn settings_are_read_in_the_form_of_each_tool() {
    for (text, expected) in [
        (
            "- hosts: db\n  tasks:\n    - name: pages\n      ansible.posix.sysctl:\n        name: vm.nr_hugepages\n        value: \"1024\"\n        state: present\n",
            "6 vm.nr_hugepages=1024",
        ),
        (
            "- hosts: db\n  tasks:\n    - sysctl:\n        value: 64\n        name: vm.nr_hugepages\n",
            "4 vm.nr_hugepages=64",
        ),
        (
            "- sysctl: name={{ item.name }} value=5\n  with_items:\n    - { name: 'vm.nr_hugepages', value: '7' }\n",
            "3 vm.nr_hugepages=7",
        ),
        (
            "vm.nr_hugepages:\n  sysctl.present:\n    - value: 1024\n",
            "3 vm.nr_hugepages=1024",
        ),
        (
            "sysctl { 'vm.nr_hugepages': ensure => present, value => '1024' }\n",
            "1 vm.nr_hugepages=1024",
        ),
        (
            "sysctl { 'vm.nr_hugepages':\n  value => '1024',\n}\nsysctl { 'kernel.shmmax': value => '9' }\n",
            "2 vm.nr_hugepages=1024, 4 kernel.shmmax=9",
        ),
        (
            "sysctl 'vm.nr_hugepages' do\n  value '1024'\nend\n",
            "2 vm.nr_hugepages=1024",
        ),
    ] {
        assert_eq!(sysctl(text).join(", "), expected, "{text}");
    }
}

#[test]
fn texts_within_a_file_are_read_by_what_they_are() {
    for (text, expected) in [
        (
            "resource \"x\" \"y\" {\n  sysctls = {\n    \"vm.nr_hugepages\" = \"1024\"\n  }\n}\n",
            "3 vm.nr_hugepages=1024",
        ),
        (
            "%post\necho 'vm.nr_hugepages = 1024' >> /etc/sysctl.conf\n%end\n",
            "2 vm.nr_hugepages=1024",
        ),
        (
            "resource \"a\" \"b\" {\n  user_data = <<-EOF\n    #cloud-config\n    runcmd:\n      - sysctl -w vm.nr_hugepages=8\n  EOF\n}\n",
            "5 vm.nr_hugepages=8",
        ),
        (
            "%post\nsysctl -w vm.nr_hugepages=8\n%postun\nsysctl -w vm.nr_hugepages=0\n%files\n",
            "2 vm.nr_hugepages=8",
        ),
        (
            "#cloud-config\nruncmd:\n  - sysctl -w vm.nr_hugepages=1024\n  - [ sh, -c, 'echo 5 > /proc/sys/vm/nr_overcommit_hugepages' ]\n",
            "3 vm.nr_hugepages=1024, 4 vm.nr_overcommit_hugepages=5",
        ),
        (
            "#cloud-config\nwrite_files:\n  - path: /etc/sysctl.d/9.conf\n    content: |\n      # pages\n      vm.nr_hugepages = 1024\n",
            "6 vm.nr_hugepages=1024",
        ),
        (
            "- hosts: a\n  tasks:\n  - lineinfile:\n      path: /etc/sysctl.conf\n      line: vm.nr_hugepages = 1024\n",
            "5 vm.nr_hugepages=1024",
        ),
    ] {
        assert_eq!(sysctl(text).join(", "), expected, "{text}");
    }
}

#[test]
fn what_a_tool_works_out_or_takes_away_is_no_setting() {
    for text in [
        "- sysctl:\n    name: vm.nr_hugepages\n    value: \"{{ pages }}\"\n- sysctl:\n    name: vm.nr_hugepages\n    value: 8\n    state: absent\n- sysctl:\n    name: vm.swappiness\n    value: 1\n",
        "sysctl { 'vm.nr_hugepages': value => $pages }\nsysctl { 'vm.swappiness': value => '1' }\n",
        "sysctl 'vm.nr_hugepages' do\n  value node['pages']\nend\nsysctl 'vm.swappiness' do\n  value '1'\nend\n",
        "#cloud-config\nruncmd:\n  - test $(sysctl -n vm.nr_hugepages) -gt 4\n  - sysctl -w vm.nr_hugepages=$N\n  - sysctl -w vm.swappiness=1\n",
        "#cloud-config\nwrite_files:\n  - path: /etc/sysctl.d/9.conf\n    content: |\n      vm.nr_hugepages = {{ pages }}\n      vm.swappiness = 1\n",
    ] {
        let all = sysctl(text);
        assert!(
            all.len() == 1 && all[0].ends_with("vm.swappiness=1"),
            "{all:?} of {text}"
        );
    }
    let nothing = "- hosts: all\n  tasks:\n    - debug: msg=vm.nr_hugepages\n";
    assert!(FileKind::of("site.yml", nothing).is_err());
}

#[test]
fn boot_lines_limits_and_policies_are_read_too() {
    let kickstart = given(
        "ks.cfg",
        "bootloader --location=mbr --append=\"quiet default_hugepagesz=1G hugepagesz=1G hugepages=16\"\n%post\necho never > /sys/kernel/mm/transparent_hugepage/enabled\n%end\n",
    );
    let pools = &kickstart.boot[0].boot.pools;
    assert_eq!((kickstart.boot.len(), pools.len(), pools[0].pages.total()), (1, 1, 16));
    assert_eq!(kickstart.boot[0].place, "ks.cfg:1");
    let policy = &kickstart.policies[0];
    assert_eq!((policy.place.as_str(), policy.value.as_str()), ("ks.cfg:3", "never"));
    let butane = given(
        "node.bu",
        "variant: fcos\nversion: 1.5.0\nkernel_arguments:\n  should_exist:\n    - hugepagesz=1G\n    - hugepages=4\nstorage:\n  files:\n    - path: /etc/security/limits.d/9.conf\n      contents:\n        inline: |\n          oracle soft memlock 100\n",
    );
    assert_eq!(butane.boot[0].boot.pools[0].pages.total(), 4);
    assert_eq!(butane.limits[0].place, "node.bu:/etc/security/limits.d/9.conf:12");
    let pam = given(
        "limits.yml",
        "- community.general.pam_limits:\n    domain: oracle\n    limit_type: soft\n    limit_item: memlock\n    value: 64\n",
    );
    let limit = &pam.limits[0];
    assert_eq!(
        (limit.domain.as_str(), limit.kind.as_str(), limit.value.as_str()),
        ("oracle", "soft", "64")
    );
}

#[test]
fn conditions_messages_and_other_tasks_set_nothing() {
    let play = |tasks: &str| format!("- hosts: db\n  tasks:\n{tasks}    - sysctl: {{name: vm.swappiness, value: 1}}\n");
    for (tasks, listed) in [
        (
            "    - sysctl: {name: vm.nr_hugepages, value: 16}\n      when: small\n",
            1,
        ),
        ("    - shell: sysctl -w vm.nr_hugepages=16\n      when: small\n", 1),
        ("    - shell: sysctl -w vm.nr_hugepages={{ pages }}\n", 1),
        (
            "    - command: ls\n      failed_when: \"'vm.nr_hugepages = 0' in out.stdout\"\n",
            0,
        ),
        ("    - debug: {msg: \"vm.nr_hugepages=0 would be wrong\"}\n", 0),
        ("    - copy: {dest: /etc/motd, content: \"vm.nr_hugepages=0\"}\n", 0),
    ] {
        let given = given("play.yml", &play(tasks));
        let names: Vec<&str> = given.sysctl.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(
            (names, given.unresolved.len()),
            (vec!["vm.swappiness"], listed),
            "{tasks}"
        );
        assert!(!given.sets_pools(), "{tasks}");
    }
    let several = "- hosts: small\n  tasks:\n  - sysctl: {name: vm.nr_hugepages, value: 16}\n- hosts: large\n  tasks:\n  - sysctl: {name: vm.nr_hugepages, value: 64}\n";
    assert_eq!(given("site.yml", several).unresolved.len(), 2);
}

#[test]
fn neighbours_keep_their_own_values() {
    for text in [
        "- hosts: db\n  tasks:\n    - name: pages\n      sysctl: {name: vm.nr_hugepages, value: 16}\n    - name: an old file\n      file: {path: /etc/x, state: absent}\n",
        "sysctl { 'vm.nr_hugepages': value => '16' }\nfile { '/etc/old.conf': ensure => absent }\n",
        "- sysctl: name=vm.nr_hugepages value=16 state=present\n",
    ] {
        let all: Vec<String> = given("f", text)
            .sysctl
            .iter()
            .map(|set| format!("{}={}", set.name, set.value))
            .collect();
        assert_eq!(all, ["vm.nr_hugepages=16"], "{text}");
    }
}

#[test]
fn texts_within_a_file_that_are_not_read_are_listed() {
    let text = "resource \"a\" \"b\" {\n  user_data = <<-EOF\n    #cloud-config\n    a: [\n    - sysctl -w vm.nr_hugepages=8\n  EOF\n}\n";
    let given = given("main.tf", text);
    assert_eq!((given.sysctl.0.len(), given.unresolved.len()), (0, 1));
    assert!(
        given.unresolved[0].starts_with("main.tf:5: - sysctl"),
        "{:?}",
        given.unresolved
    );
    let nothing = Given::default().add("a.yml", b"a: [\n", Some(FileKind::Provision));
    assert!(nothing.is_err());
}

/// Counts of nodes and of sizes come from the reader of scripts.
#[test]
fn commands_are_read_as_a_shell_runs_them() {
    let text = "- hosts: db\n  tasks:\n    - shell: echo 16 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages\n";
    let given = given("play.yml", text);
    assert_eq!((given.pool_writes.len(), given.pool_writes[0].node), (1, Some(0)));
    assert_eq!(given.pool_writes[0].line.place, "play.yml:3");
    assert!(given.sets_pools());
}
