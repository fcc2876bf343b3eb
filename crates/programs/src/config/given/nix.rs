//! Modules of NixOS: what they set of the kernel's command line and of its settings, as far as it is written there word by word.

use model::{Cause, Unread};

use super::garbled::empty;
use super::node::{Setup, boot_line};
use super::tokens::{Token, What, tokens};
use crate::config::Setting;

/// `boot.kernelParams = [ ... ]` and `boot.kernel.sysctl`.
///
/// # Errors
/// If what is about huge pages is computed there.
pub(super) fn setup(path: &str, text: &str) -> Result<Setup, Unread> {
    let tokens = tokens(text);
    let mut setup = Setup::default();
    for (at, token) in tokens.iter().enumerate() {
        let place = format!("{path}:{}", token.line);
        match &token.what {
            What::Word(word) if word.ends_with("kernelParams") => {
                let after = &tokens[at + 1..];
                let words = list(after).ok_or_else(|| computed(&place, word))?;
                if !words.is_empty() {
                    let line = first_about_pages(after).unwrap_or(token.line);
                    setup.boot.push(boot_line(format!("{path}:{line}"), &words.join(" ")));
                }
            }
            What::Text(name) if name.contains('.') && !assigned(&tokens[at + 1..]).is_empty() => {
                let literal = value(&tokens[at + 1..]).filter(|_| is_sysctl(&tokens[..at]));
                match literal {
                    Some(value) => setup.sysctl.push(Setting::new(place, name, value)),
                    // Also in a set that depends on something.
                    None if name.starts_with("vm.") && name.contains("huge") => return Err(computed(&place, name)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    match setup.boot.is_empty() && setup.sysctl.is_empty() {
        true => Err(empty(path, "it sets neither boot.kernelParams nor boot.kernel.sysctl")),
        false => Ok(setup),
    }
}

fn computed(place: &str, name: &str) -> Unread {
    let why = format!(
        "`{name}` is computed here, and hugewise reads what is written out alone: give it the /proc/cmdline and sysctl settings of a machine"
    );
    Unread::new(Cause::Garbled, place, why)
}

/// Is a name behind these one in `sysctl = {`, or behind `sysctl.`?
fn is_sysctl(before: &[Token]) -> bool {
    let mut depth = 0;
    for (at, token) in before.iter().enumerate().rev() {
        match &token.what {
            What::Word(word) if at + 1 == before.len() && word.ends_with("sysctl.") => return true,
            What::Sign('}') => depth += 1,
            What::Sign('{') if depth > 0 => depth -= 1,
            What::Sign('{') => {
                let of_set = before[..at].iter().rev().find(|token| token.what != What::Sign('='));
                return of_set.is_some_and(|token| matches!(&token.what, What::Word(word) if word.ends_with("sysctl")));
            }
            _ => {}
        }
    }
    false
}

/// What is assigned, up to the `;`.
fn assigned(after: &[Token]) -> Vec<&What> {
    let [first, rest @ ..] = after else { return Vec::new() };
    let until = rest.iter().take_while(|token| first.is('=') && !token.is(';'));
    until.map(|token| &token.what).collect()
}

/// The texts of `= [ "a" "b" ];`, also of `= lib.mkAfter [ "a" ] ++ [ "b" ];`; `None` if what they say of huge pages depends on something, or
/// no list is there.
fn list(after: &[Token]) -> Option<Vec<&str>> {
    let all = assigned(after);
    let (mut texts, mut is_inside, mut is_plain) = (Vec::new(), false, true);
    if !all.is_empty() && !all.contains(&&What::Sign('[')) {
        return None;
    }
    for (at, what) in all.into_iter().enumerate() {
        match what {
            What::Sign('[') => is_inside = true,
            What::Sign(']') => is_inside = false,
            What::Text(text) if is_inside => texts.push(text.as_str()),
            What::Text(text) if text.contains("huge") => return None,
            What::Sign('+') => {}
            What::Word(_) if at == 0 => {}
            _ => is_plain = false,
        }
    }
    let is_open = |text: &&str| text.contains("${");
    let is_lost = |text: &&str| text.contains("huge") && (!is_plain || is_open(text));
    if texts.iter().any(is_lost) {
        return None;
    }
    texts.retain(|text| !is_open(text));
    Some(texts)
}

/// The line of the first word about pages that is assigned.
fn first_about_pages(after: &[Token]) -> Option<usize> {
    let mut until = after.iter().take_while(|token| !token.is(';'));
    let is_it = |token: &&Token| matches!(&token.what, What::Text(text) if text.contains("huge"));
    until.find(is_it).map(|token| token.line)
}

/// The number or text of `= 1280;`, also of `= lib.mkForce 1280;` and `= lib.mkOverride 50 1280;`.
fn value(after: &[Token]) -> Option<String> {
    let all = assigned(after);
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let literal = match all[..] {
        [literal] => literal,
        [What::Word(function), literal] if !is_number(function) => literal,
        [What::Word(function), What::Word(_), literal] if function.ends_with("mkOverride") => literal,
        _ => return None,
    };
    match literal {
        What::Word(word) if is_number(word) => Some(word.clone()),
        What::Text(text) if !text.contains("${") => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::setup;

    #[test]
    fn both_ways_to_write_settings_are_read() {
        let text = "{ lib, ... }: {\n  # boot.kernelParams = [ \"hugepages=9\" ];\n  boot.kernelParams = [\n    \"quiet\" \"hugepagesz=1G\"\n    \
                    \"hugepages=16\"\n  ];\n  boot.kernel.sysctl.\"vm.nr_hugepages\" = lib.mkForce 3072;\n  boot.kernel.sysctl = {\n    \
                    \"vm.swappiness\" = 10;\n  };\n  environment.etc.\"a.conf\" = 7;\n  script = ''a ''${b}'';\n  \
                    boot.kernel.sysctl.\"vm.dirty_ratio\" = 5;\n}\n";
        let read = setup("a.nix", text).expect("a module");
        let lines: Vec<&str> = read.boot.iter().map(|line| line.words.as_str()).collect();
        assert_eq!(lines, ["quiet hugepagesz=1G hugepages=16"]);
        assert_eq!(read.boot[0].place, "a.nix:4");
        let set: Vec<String> = read
            .sysctl
            .iter()
            .map(|set| format!("{} {}={}", set.place, set.name, set.value))
            .collect();
        assert_eq!(
            set,
            [
                "a.nix:7 vm.nr_hugepages=3072",
                "a.nix:9 vm.swappiness=10",
                "a.nix:13 vm.dirty_ratio=5"
            ]
        );
        assert!(setup("b.nix", "{ }").is_err());
        let one = |text: &str| setup("c.nix", text).map_err(|error| error.why);
        for text in [
            "boot.kernel.sysctl.\"vm.nr_hugepages\" = 1024 * 16;",
            "boot.kernelParams = [ \"hugepages=${toString n}\" ];",
            "boot.kernelParams = lib.optional big [ \"hugepages=4\" ];",
            "boot.kernelParams = [ \"quiet\" ] ++ lib.optional big \"hugepages=4\";",
            "boot.kernelParams = parameters;",
            "boot.kernel.sysctl = lib.mkIf big { \"vm.nr_hugepages\" = 4; };",
        ] {
            assert!(one(text).expect_err(text).contains("is computed here"), "{text}");
        }
        let kept = one("boot.kernel.sysctl.\"vm.nr_hugepages\" = lib.mkOverride 50 3072;").expect("a literal");
        assert_eq!(kept.sysctl[0].value, "3072");
        let both = one("boot.kernelParams = [ \"quiet\" ] ++ [ \"hugepages=4\" ];").expect("two lists");
        assert_eq!(both.boot[0].words, "quiet hugepages=4");
        let long = one("boot.kernelParams = [ ''hugepages=4'' ];").expect("a text");
        assert_eq!(long.boot[0].words, "hugepages=4");
    }

    proptest! {
        #[test]
        fn any_text_has_an_end(text in "[\\[\\]{}=;\"'#/*a-z.0-9é\n\\\\ ]{0,60}") {
            let _ = setup("x.nix", &text);
        }
    }
}
