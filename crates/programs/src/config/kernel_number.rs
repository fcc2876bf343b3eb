//! Whole numbers as the kernel takes them from files below /proc/sys, which sysctl(8) and systemd-sysctl hand over as written.

use host::parse::kernel_number;

/// The longest number that it looks at (`TMPBUFLEN` of kernel/sysctl.c, less one for its end).
const LONGEST: usize = 21;

/// What proc_doulongvec_minmax() takes of a value: the first number, decimal, `0x` or octal with a `0` in front. What follows it behind white
/// space is not looked at. Others are refused (EINVAL), and leave the setting as it was; so does a negative number, in silence.
pub(crate) fn taken(value: &str) -> Option<u64> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n');
    let value = value.trim_start_matches(is_space);
    let value = value.get(..LONGEST).unwrap_or(value);
    let (number, rest) = kernel_number(value)?;
    (rest.is_empty() || rest.starts_with(is_space)).then_some(number)
}

/// Settings of huge pages that are one such number.
pub(crate) fn is_number(name: &str) -> bool {
    [
        "vm.nr_hugepages",
        "vm.nr_overcommit_hugepages",
        "vm.nr_hugepages_mempolicy",
        "vm.hugetlb_shm_group",
        "kernel.shmmax",
        "kernel.shmall",
    ]
    .contains(&name)
}

#[cfg(test)]
mod tests {
    use super::taken;

    /// As written to /proc/sys/vm/nr_overcommit_hugepages of Linux 6.18, and read back; none where the file refused it or stayed as it was.
    const WRITTEN: [(&str, Option<u64>); 42] = [
        ("4096", Some(4096)),
        (" 4096", Some(4096)),
        ("4096 ", Some(4096)),
        ("\t4096\t", Some(4096)),
        ("4096   # comment", Some(4096)),
        ("4096 ; comment", Some(4096)),
        ("4096 4097", Some(4096)),
        ("4096\t4097", Some(4096)),
        ("0", Some(0)),
        ("00", Some(0)),
        ("0x1000", Some(4096)),
        ("0X1000", Some(4096)),
        ("0xFf", Some(255)),
        ("0x", None),
        ("0xg", None),
        ("01000", Some(512)),
        ("0777", Some(511)),
        ("08", None),
        ("019", None),
        ("8G", None),
        ("4096M", None),
        ("4k", None),
        ("4,096", None),
        ("4.0", None),
        ("4_096", None),
        ("4'096", None),
        ("\"4096\"", None),
        ("'4096'", None),
        ("-1", None),
        ("-4096", None),
        ("+5", None),
        ("1e3", None),
        ("# 5", None),
        ("x", None),
        ("4096#comment", None),
        ("4096;", None),
        ("4096 G", Some(4096)),
        ("1000000", Some(1_000_000)),
        ("18446744073709551616", None),
        ("99999999999999999999999", None),
        ("0b11", None),
        ("", None),
    ];

    #[test]
    fn a_value_is_what_the_kernel_takes_of_it() {
        for (written, expected) in WRITTEN {
            assert_eq!(taken(written), expected, "{written:?}");
        }
    }
}
