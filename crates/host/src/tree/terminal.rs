//! What was copied from a terminal: commands that show files of the kernel, and what they printed.

use super::Tree;

/// Commands that print lines of the files that they name.
const PRINT: [&str; 7] = ["cat", "grep", "egrep", "head", "tail", "more", "less"];
const RELEASE: &str = "/proc/sys/kernel/osrelease";

impl Tree {
    /// A machine of which no more is known than what a terminal showed, or a copy of `/proc/meminfo`. `None` for other text.
    pub fn of_terminal(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        if lines.iter().all(|line| is_amount(line)) && lines.iter().any(|line| line.contains("Huge")) {
            return Some(Self::new().with_lines("/proc/meminfo", &lines));
        }
        let mut blocks = lines.split(|line| typed(line).is_some());
        // What stands before the first command is a log, or nothing.
        blocks.next();
        let commands = lines.iter().filter_map(|line| typed(line));
        let tree = commands
            .zip(blocks)
            .fold(Self::new(), |tree, (command, shown)| tree.shown(command, shown));
        (!tree.is_empty()).then_some(tree)
    }

    /// With what a command shows of files. Its errors, and what it shows of others, are left out.
    fn shown(self, command: &str, lines: &[&str]) -> Self {
        let words: Vec<&str> = command.split_whitespace().skip_while(|word| *word == "sudo").collect();
        let is_error = |line: &&&str| line.contains(": No such file") || line.contains(": Permission denied");
        if lines.is_empty() || lines.iter().any(|line| is_error(&line)) {
            return self;
        }
        match words[..] {
            ["uname", "-r"] if lines.len() == 1 => self.with_lines(RELEASE, lines),
            ["sysctl", ..] => lines
                .iter()
                .filter_map(|line| line.split_once(" = "))
                .fold(self, |tree, (name, value)| {
                    tree.line(&format!("/proc/sys/{}", name.trim().replace('.', "/")), value)
                }),
            [program, ..] if PRINT.contains(&program) => {
                let is_kernels = |word: &&&str| word.starts_with("/proc/") || word.starts_with("/sys/");
                let paths: Vec<&str> = words.iter().filter(is_kernels).copied().collect();
                match paths[..] {
                    _ if paths.iter().any(|path| path.contains('*')) => self,
                    [path] => self.with_lines(path, lines),
                    _ if paths.len() == lines.len() => paths
                        .iter()
                        .zip(lines)
                        .fold(self, |tree, (path, line)| tree.line(path, line)),
                    _ => self,
                }
            }
            _ => self,
        }
    }

    fn with_lines(self, path: &str, lines: &[&str]) -> Self {
        // The kernel has a link there.
        let path = if path == "/proc/mounts" {
            "/proc/self/mounts"
        } else {
            path
        };
        self.file(path, lines.join("\n") + "\n")
    }
}

/// The command behind a prompt such as `$ `, `root@db:~# ` or `[user@vm ~]$ `.
fn typed(line: &str) -> Option<&str> {
    let at = line.find("$ ").or_else(|| line.find("# "))?;
    let prompt = &line[..at];
    let is_prompt = prompt.is_empty() || prompt.contains('@') || prompt.starts_with('[');
    is_prompt.then(|| line[at + 2..].trim())
}

/// Is it a line such as `MemTotal:  16318000 kB` or `HugePages_Free:  16`?
fn is_amount(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, amount)| {
        let amount = amount.trim().trim_end_matches(" kB");
        !name.contains([' ', '/', '|']) && !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{RELEASE, Tree};

    const MEMINFO: &str = "HugePages_Total:     512\nHugepagesize:       2048 kB\n";

    #[test]
    fn commands_and_what_they_printed_are_files_of_a_machine() {
        let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
        let text = format!(
            "[user@vm ~]$ uname -r\n6.18.2-7.azl4.x86_64\n[user@vm ~]$ grep -i huge /proc/meminfo\n{MEMINFO}\
             root@vm:~# sudo cat {enabled} /proc/sys/vm/nr_hugepages\nalways [madvise] never\n512\n\
             $ sysctl vm.max_map_count\nvm.max_map_count = 65530\n$ cat /sys/none\ncat: /sys/none: No such file or directory\n\
             # ps -eo comm\nkhugepaged\n"
        );
        let expected = Tree::new()
            .line(RELEASE, "6.18.2-7.azl4.x86_64")
            .file("/proc/meminfo", MEMINFO)
            .line(enabled, "always [madvise] never")
            .line("/proc/sys/vm/nr_hugepages", 512)
            .line("/proc/sys/vm/max_map_count", 65530);
        assert_eq!(Tree::of_terminal(&text), Some(expected));
        let log = format!("fi_mr_reg: Cannot allocate memory\n$ grep -i huge /proc/meminfo\n{MEMINFO}");
        for text in [MEMINFO, &log] {
            let expected = Tree::new().file("/proc/meminfo", MEMINFO);
            assert_eq!(Tree::of_terminal(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_machine() {
        let archive = Tree::new().file("/proc/meminfo", MEMINFO).to_text();
        for text in [
            "",
            "hello\n",
            "$ ls\na\n",
            "# vm.nr_hugepages = 5\nvm.nr_hugepages = 6\n",
            &archive,
        ] {
            assert_eq!(Tree::of_terminal(text), None, "{text}");
        }
    }
}
