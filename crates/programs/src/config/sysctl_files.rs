//! sysctl settings on disk, in the order in which systemd-sysctl applies them (sysctl.d(5)).

use model::Unread;

use super::files::{Line, content, drop_ins, has_configuration, in_sections, listed, taken};
use super::{Distribution, Setting, Settings, Unheard, UnheardWhy, distribution, kernel_number, tuned};
use host::Source;

/// Directories, the strongest first: a file hides one of the same name in a later directory.
const DIRECTORIES: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// Read by procps's `sysctl --system` after all others; distributions link it as `sysctl.d/99-sysctl.conf`.
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
const WSL_CONF: &str = "/etc/wsl.conf";
/// The release of Debian that links it no more: systemd reads directories alone (sysctl.d(5)), so that nothing reads it at boot.
const NO_LONGER: u32 = 13;

/// The setting of the pool of the default size.
pub(super) const POOL: &str = "vm.nr_hugepages";
/// The same pool, for writers that are bound to some nodes.
pub(super) const BY_POLICY: &str = "vm.nr_hugepages_mempolicy";

/// All settings in the order in which they are applied, those of tuned among them: with `reapply_sysctl` files of /etc and /run follow it
/// once more, and those of packages do not (tuned-main.conf).
pub(super) fn read(source: &Source) -> Result<Settings, Unread> {
    has_configuration(source)?;
    let mut settings = taken(source, files(source)?, &['#', ';'], setting)?;
    let own = tuned::sysctls(source)?;
    if own.is_empty() || !tuned::reapplies(source)? {
        settings.extend(own);
    } else {
        settings.sort_by_key(|setting| !is_packaged(&setting.place));
        let at = settings.partition_point(|setting| is_packaged(&setting.place));
        settings.splice(at..at, own);
    }
    Ok(Settings(settings))
}

/// Is it a package's own file, which the next update brings again?
pub fn is_packaged(place: &str) -> bool {
    let directories = ["/usr/lib/", "/lib/", "/usr/local/lib/"];
    directories.iter().any(|directory| place.starts_with(directory))
}

/// Settings of huge pages in files that nothing reads at boot.
pub(super) fn unheard(source: &Source) -> Result<Vec<Unheard>, Unread> {
    if is_without_systemd(source) {
        let mut paths = all_files(source)?;
        paths.retain(|path| !is_packaged(path));
        paths.push(SYSCTL_CONF.to_owned());
        let why = wsl_command(source).map_or(UnheardWhy::NoSystemd, |_| UnheardWhy::PerhapsByCommand);
        return lost(source, paths, &why);
    }
    let mut unheard = lost(source, misnamed(source)?, &UnheardWhy::SysctlName)?;
    if !is_read(source, &files(source)?) {
        unheard.extend(lost(source, vec![SYSCTL_CONF.to_owned()], &UnheardWhy::SysctlConf)?);
    }
    Ok(unheard)
}

fn lost(source: &Source, paths: Vec<String>, why: &UnheardWhy) -> Result<Vec<Unheard>, Unread> {
    let is_ours = |setting: &Setting| setting.name.contains("huge") || setting.name.starts_with("kernel.shm");
    let lines = taken(source, paths, &['#', ';'], setting)?.into_iter();
    let unheard = lines.filter(is_ours).map(|setting| Unheard {
        place: setting.place,
        words: format!("{} = {}", setting.name, setting.value),
        why: why.clone(),
    });
    Ok(unheard.collect())
}

/// Files of the administrator whose names lack their end; with another one (`x.disabled`) they are put aside on purpose.
fn misnamed(source: &Source) -> Result<Vec<String>, Unread> {
    let [own, ..] = DIRECTORIES;
    let mut names = listed(source, own)?;
    names.retain(|name| !name.contains('.') && name != "README" && !name.ends_with('~'));
    let paths = names.into_iter().map(|name| format!("{own}/{name}"));
    Ok(paths.filter(|path| source.list(path).known().is_none()).collect())
}

/// WSL starts its own init where systemd is not switched on. It applies no such files, unless its own command does.
pub(super) fn is_without_systemd(source: &Source) -> bool {
    let init = source.line("/proc/1/comm");
    Distribution::by_start(source) == Some(Distribution::Wsl)
        && init.known().is_some_and(|name| name != "systemd")
        && !wsl_command(source).is_some_and(|command| applies_sysctl(&command))
}

/// What WSL runs at start: `command=` below [boot] of its file.
fn wsl_command(source: &Source) -> Option<String> {
    let text = content(source, WSL_CONF).ok().flatten()?;
    let of_boot = in_sections(WSL_CONF, &text, &['#', ';']).filter(|(section, _)| *section == "[boot]");
    let commands = of_boot.filter_map(|(_, line)| line.pair().filter(|(key, _)| *key == "command"));
    let (_, command) = commands.last()?;
    (!command.is_empty()).then(|| command.to_owned())
}

/// `service procps start` runs sysctl on the same files.
pub(crate) fn applies_sysctl(command: &str) -> bool {
    command.contains("sysctl") || command.contains("procps")
}

/// The files in the order of application: by name, whatever the directory.
fn files(source: &Source) -> Result<Vec<String>, Unread> {
    if is_without_systemd(source) {
        return Ok(Vec::new());
    }
    let mut files = all_files(source)?;
    if is_read(source, &files) && !files.iter().any(|path| is_link(source, path)) {
        files.push(SYSCTL_CONF.to_owned());
    }
    Ok(files)
}

fn all_files(source: &Source) -> Result<Vec<String>, Unread> {
    let mut by_name = drop_ins(source, &DIRECTORIES)?;
    by_name.sort();
    Ok(by_name.into_iter().map(|(_, path)| path).collect())
}

/// Does something read `/etc/sysctl.conf` at boot? Beside a link to it among the files of `sysctl.d`, Debian's older releases and others are taken to.
fn is_read(source: &Source, files: &[String]) -> bool {
    let is_old = distribution::debian_release(source).is_none_or(|release| release < NO_LONGER);
    is_old || files.iter().any(|path| is_link(source, path))
}

fn is_link(source: &Source, path: &str) -> bool {
    let target = source.link(path);
    target.known().is_some_and(|target| target.ends_with("/sysctl.conf"))
}

/// `name = value`; a `-` before the name lets errors pass; slashes in names are dots. A number is as the kernel takes it, whatever
/// stands behind it; one that it refuses stays as written.
pub(super) fn setting(line: &Line<'_>) -> Option<Setting> {
    let (name, value) = line.pair()?;
    Some(named(line, name, value))
}

pub(super) fn named(line: &Line<'_>, name: &str, value: &str) -> Setting {
    taken_as(line.setting(name, value))
}

/// A setting under the name and with the number that the kernel takes.
pub(super) fn taken_as(setting: Setting) -> Setting {
    let name = setting.name.trim_start_matches('-').trim_start().replace('/', ".");
    let taken = kernel_number::taken(&setting.value).filter(|_| kernel_number::is_number(&name));
    let value = taken.map_or(setting.value, |number| number.to_string());
    Setting::new(setting.place, name, value)
}

/// Why the kernel does not take the setting, if it does not.
pub(super) fn refused(setting: &Setting) -> Option<Unread> {
    let is_refused = kernel_number::is_number(&setting.name) && kernel_number::taken(&setting.value).is_none();
    is_refused.then(|| setting.garbled("a number that the kernel takes (digits alone), so the setting stays as it was"))
}
