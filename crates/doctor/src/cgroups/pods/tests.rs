//! Resources of whole pods, and programs of DPDK in containers.

use crate::files_tests::{clear, found, unjudged};

/// A pod with its own resources, and two containers with theirs.
fn pod(whole: &str, containers: [&str; 2]) -> String {
    let [first, second] = containers;
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  resources: {whole}\n  containers:\n  - {{name: a, resources: {first}}}\n  \
         - {{name: b, resources: {second}}}\n"
    )
}

fn says(id: &str, files: &[(&str, &str)], text: &str) {
    let finding = found(id, files);
    assert!(finding.consequence.contains(text), "{finding:?}");
}

const NONE: [&str; 2] = ["{}", "{}"];

#[test]
fn resources_of_a_whole_pod_are_checked_as_those_of_a_container() {
    let good = "{limits: {memory: 1Gi, hugepages-2Mi: 64Mi}}";
    clear("C06", &[("p.yaml", &pod(good, NONE))]);
    for (bad, why) in [
        (
            "{limits: {memory: 1Gi, hugepages-2Mi: 3Mi}}",
            "3Mi is not a multiple of the page size 2M",
        ),
        ("{limits: {hugepages-2Mi: 64Mi}}", "must request cpu or memory too"),
        (
            "{requests: {memory: 1Gi, hugepages-2Mi: 64Mi}}",
            "requests and limits must be equal",
        ),
        (
            "{limits: {memory: 1Gi, hugepages-2M: 64Mi}}",
            "the pod p does not run: no node has the resource hugepages-2M",
        ),
    ] {
        says("C06", &[("p.yaml", &pod(bad, NONE))], why);
    }
    let with_cpu = pod("{limits: {hugepages-2Mi: 64Mi}}", ["{requests: {cpu: 1}}", "{}"]);
    clear("C06", &[("p.yaml", &with_cpu)]);
}

#[test]
fn containers_share_what_the_pod_has() {
    let own = "{limits: {memory: 1Gi, hugepages-2Mi: 512Mi}}";
    let whole = |mib: u32| {
        pod(
            &format!("{{limits: {{memory: 4Gi, hugepages-2Mi: {mib}Mi}}}}"),
            [own, own],
        )
    };
    clear("C06", &[("p.yaml", &whole(1024))]);
    says(
        "C06",
        &[("p.yaml", &whole(768))],
        "its containers have 1G in pages of 2M, and it has 768M",
    );
    // Of a node it is the pod's that count.
    let sysctl = |pages: u32| format!("vm.nr_hugepages = {pages}\n");
    clear("C06", &[("p.yaml", &whole(2048)), ("sysctl.conf", &sysctl(1024))]);
    says(
        "C06",
        &[("p.yaml", &whole(2048)), ("sysctl.conf", &sysctl(1023))],
        "the pod p",
    );
    says("C04", &[("p.yaml", &whole(2048))], "mounts no hugetlbfs");
}

#[test]
fn a_program_in_a_container_may_take_the_pages_of_its_pod() {
    let java = |whole: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  resources: {whole}\n  containers:\n  - name: j\n    \
             command: [java, -XX:+UseLargePages, -Xmx1g, -jar, a.jar]\n"
        )
    };
    let enough = java("{limits: {memory: 4Gi, hugepages-2Mi: 2Gi}}");
    let pool = ("sysctl.conf", "vm.nr_hugepages = 4096\n");
    clear("C06", &[("p.yaml", &enough), pool]);
    let short = found(
        "C06",
        &[("p.yaml", &java("{limits: {memory: 4Gi, hugepages-2Mi: 512Mi}}")), pool],
    );
    assert!(short.consequence.contains("its limit is 256"), "{short:?}");
    assert!(
        short.fix[0].ends_with("in limits and requests of the pod's resources"),
        "{short:?}"
    );
    says(
        "C06",
        &[("p.yaml", &java("{limits: {memory: 4Gi}}")), pool],
        "requests no hugetlb pages",
    );
}

/// A container with this command and these limits, and volumes of 2M at /dev/hugepages and of 1G at /mnt/huge.
fn dpdk(command: &str, limits: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: fwd\n    command: [{command}]\n    \
         resources: {{limits: {{memory: 1Gi, {limits}}}}}\n    volumeMounts: [{{name: h, mountPath: /dev/hugepages}}, {{name: g, mountPath: \
         /mnt/huge}}]\n  volumes: [{{name: h, emptyDir: {{medium: HugePages-2Mi}}}}, {{name: g, emptyDir: {{medium: HugePages-1Gi}}}}]\n"
    )
}

#[test]
fn the_memory_of_dpdk_against_the_limits_of_its_container() {
    let both = "hugepages-2Mi: 512Mi, hugepages-1Gi: 2Gi";
    let in_dir = |mib: u32, directory: &str| dpdk(&format!("dpdk-testpmd, -m, '{mib}', --huge-dir, {directory}"), both);
    clear("C06", &[("p.yaml", &in_dir(2048, "/mnt/huge/fwd"))]);
    clear("C06", &[("p.yaml", &in_dir(512, "/dev/hugepages"))]);
    let small = in_dir(2048, "/dev/hugepages");
    says(
        "C06",
        &[("p.yaml", &small)],
        "needs 1024 pages of 2M, and its limit is 256: it does not start",
    );
    says(
        "C06",
        &[("p.yaml", &in_dir(2049, "/mnt/huge"))],
        "needs 3 pages of 1G, and its limit is 2",
    );
    let by_node = dpdk(
        "testpmd, '--socket-mem=512,512', --huge-dir=/mnt/huge",
        "hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi",
    );
    says(
        "C06",
        &[("p.yaml", &by_node)],
        "needs 2 pages of 1G, and its limit is 1",
    );
    // It takes pages of both sizes, and how many of each is not known.
    clear("C06", &[("p.yaml", &dpdk("dpdk-testpmd, -m, '4096'", both))]);
    clear("C06", &[("p.yaml", &dpdk("dpdk-testpmd, -m, '4096', --no-huge", both))]);
}

#[test]
fn dpdk_takes_pages_of_the_mount_that_it_names() {
    let both = "hugepages-2Mi: 512Mi, hugepages-1Gi: 2Gi";
    let elsewhere = dpdk("dpdk-testpmd, -m, '256', --huge-dir, /hugepages", both);
    let finding = found("C06", &[("p.yaml", &elsewhere)]);
    assert!(
        finding.consequence.contains("nothing is mounted at /hugepages"),
        "{finding:?}"
    );
    assert_eq!(finding.fix[0], "--huge-dir=/dev/hugepages, or mountPath: /hugepages");
    let mounts = dpdk(
        "sh, -c, mount -t hugetlbfs none /hugepages && dpdk-testpmd -m 256 --huge-dir /hugepages",
        both,
    );
    clear("C06", &[("p.yaml", &mounts)]);
}

#[test]
fn dpdk_without_a_request_of_pages() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: fwd\n    command: [dpdk-testpmd, -m, '1023']\n";
    let pool = ("sysctl.conf", "vm.nr_hugepages = 1024\n");
    let finding = found("C06", &[("p.yaml", text), pool]);
    assert!(
        finding
            .consequence
            .contains("on a node with a pool DPDK does not start"),
        "{finding:?}"
    );
    assert!(
        finding
            .fix
            .iter()
            .any(|fix| fix.contains("hugepages-2Mi: 1024Mi or more")),
        "{finding:?}"
    );
    clear("C06", &[("p.yaml", &text.replace("'1023'", "'1023', --no-huge")), pool]);
}

/// Helm's values and Strimzi's objects have a JVM's options beside the resources.
#[test]
fn a_jvm_of_a_chart_or_an_operator_has_to_request_what_it_asks_for() {
    let pool = ("sysctl.conf", "vm.nr_hugepages=1024\n");
    let strimzi = |pages: &str| {
        format!(
            "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {{name: k}}\nspec:\n  kafka:\n    jvmOptions:\n      -Xmx: 1g\n      \
             \"-XX\": {{UseLargePages: \"true\"}}\n    resources:\n      limits: {{memory: 8Gi{pages}}}\n"
        )
    };
    let values = "javaOpts: \"-Xmx1g -XX:+UseLargePages\"\nresources:\n  limits: {memory: 4Gi}\n";
    let of_list = "env:\n- {name: JAVA_TOOL_OPTIONS, value: \"-Xmx1g -XX:+UseLargePages\"}\nresources:\n  limits: {memory: 4Gi}\n";
    for text in [&strimzi(""), values, of_list] {
        let files = [("a.yaml", text), pool];
        says("C06", &files, "requests no hugetlb pages and its program asks for them");
    }
    clear("C06", &[("a.yaml", &strimzi(", hugepages-2Mi: 2Gi")), pool]);
}

#[test]
fn a_heap_that_is_a_part_of_the_memory_needs_pages_for_that_part() {
    let pod = |options: &str, memory: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: a\n    image: temurin\n    \
             command: [java, -XX:+UseLargePages, {options}, -jar, a.jar]\n    resources: {{limits: {{cpu: 1, {memory}hugepages-2Mi: 1Gi}}}}\n"
        )
    };
    let text = pod("-XX:MaxRAMPercentage=75", "memory: 2Gi, ");
    let finding = found("C06", &[("p.yaml", &text)]);
    assert!(finding.consequence.contains("and its limit is 512"), "{finding:?}");
    assert!(
        finding.evidence.iter().any(|proof| proof.value.contains("75 %")),
        "{finding:?}"
    );
    clear("C06", &[("p.yaml", &pod("-XX:MaxRAMPercentage=30", "memory: 2Gi, "))]);
    // Of a machine of unknown memory it is not known.
    unjudged(
        "C06",
        &[("p.yaml", &pod("-XX:MaxRAMPercentage=75", ""))],
        "size of the heap",
    );
}

/// KubeVirt gives the pod of a guest pages for its request, where that is the smaller one.
#[test]
fn a_guest_has_no_more_memory_than_its_pod_has_pages() {
    let guest = |page: &str, requests: &str| {
        format!(
            "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {{name: v}}\nspec:\n  domain:\n    \
             memory: {{guest: 4Gi{page}}}\n    resources: {{requests: {{memory: {requests}}}}}\n"
        )
    };
    let pages = |size: &str| format!(", hugepages: {{pageSize: {size}}}");
    let short = found("I01", &[("v.yaml", &guest(&pages("2Mi"), "2Gi"))]);
    assert!(
        short.consequence.contains("2Gi is less than the guest's 4Gi"),
        "{short:?}"
    );
    says(
        "C06",
        &[("v.yaml", &guest(&pages("1Gi"), "2560Mi"))],
        "not a multiple of the page size 1G",
    );
    for whole in ["4Gi", "5Gi"] {
        clear("I01", &[("v.yaml", &guest(&pages("2Mi"), whole))]);
    }
    // Without pages it may have more than it requests.
    clear("I01", &[("v.yaml", &guest("", "2Gi"))]);
}
