//! How files that were given are taken in, each by its kind.

use host::Tree;
use model::Unread;

use super::garbled::empty;
use super::guest::{Guest, is_hypervisor};
use super::node::{self, Setup};
use super::script::Script;
use super::starts::Start;
use super::{
    FileKind, Given, Service, bottlerocket, compose, dockerd, guest, incus, ini, java, kata, kernel, libvirt, manager,
    manifest, nix, nova, provision, proxmox, script, service, variables,
};
use crate::config::files::{Line, said};
use crate::config::tuned::Set;
use crate::config::{
    BootLine, Parameters, PoolWrite, Setting, Vmware, commands, grub, limits, policy, sysctl_files, tuned, written,
};
use crate::locks::in_file;
use crate::{dpdk, messages};

impl Given {
    pub(super) fn take(&mut self, path: &str, text: &str, kind: FileKind) -> Result<(), Unread> {
        match kind {
            FileKind::Tuned => self.profile(path, text),
            FileKind::Sysctl if tuned::is_profile(text) => self.profile(path, text),
            FileKind::Sysctl if written::is_pf_ring(text) => {
                self.pools(said(path, text, &['#']).filter_map(|line| PoolWrite::of_pf_ring(&line)));
            }
            FileKind::Sysctl if written::is_form(path, text) => self.written(&written::in_text(path, text)),
            FileKind::Sysctl => self.sysctl(path, text),
            FileKind::Cmdline => self.boot_line(path, text)?,
            FileKind::Limits => self.limits(path, text),
            FileKind::Unit if manager::is_one(path, text) => self.manager(path, text),
            FileKind::Unit => self.service(path, text),
            FileKind::Environment => {
                let (set, open) = variables::environment(path, text);
                self.environment.push((path.to_owned(), set));
                self.unresolved.extend(open);
            }
            FileKind::Java => self.java.push(java::parse(path, text)?),
            FileKind::Postgres if ini::is_patroni(text) => self.servers.push(ini::patroni(path, text)?),
            FileKind::Postgres => self.servers.push(ini::postgres(path, text, &mut self.garbled)),
            FileKind::Mysql => self
                .servers
                .push(ini::mysql(path, text, &mut self.garbled, &mut self.unresolved)),
            FileKind::Node if bottlerocket::is_user_data(text) => self.setup(path, bottlerocket::setup(path, text)?)?,
            FileKind::Node if path.ends_with(".nix") => self.setup(path, nix::setup(path, text)?)?,
            FileKind::Pod | FileKind::Node => self.manifest(path, text)?,
            FileKind::Incus => self.guests.extend(incus::parse(path, text, &mut self.garbled)?),
            FileKind::Compose if dockerd::is_daemon(path, text) => self.docker(path, text),
            FileKind::Compose => self.runs.extend(compose::parse(path, text)?),
            FileKind::Libvirt => self.guests.push(libvirt::parse(path, text)?),
            FileKind::Proxmox => self.guests.extend(proxmox::parse(path, text)?),
            FileKind::Qemu | FileKind::Firecracker => self.guests.push(guest::parse(path, text)?),
            FileKind::Oracle => {
                let own = Parameters::of(path, text);
                self.garbled.extend(own.refused());
                self.oracle.push(own);
            }
            FileKind::Nova => self.nova.push(nova::parse(path, text, &mut self.garbled)),
            FileKind::Elasticsearch => self.nodes.push(lock_in_file(path, text)),
            FileKind::Kata => self.guests.extend(kata::guests(path, text, &mut self.unresolved)),
            FileKind::Vmware => self.vmware.push(Vmware::parse(path, text)),
            FileKind::Dpdk if dpdk::is_ovs(text) => self.ovs.extend(dpdk::ovs(path, text)),
            FileKind::Dpdk => self.vpp.extend(dpdk::vpp(path, text)),
            FileKind::Log => self.log(path, text),
            FileKind::Script => self.script(path, text)?,
            FileKind::Provision => self.provision(path, text)?,
        }
        // Who shows what a command said often shows it, too.
        if is_command(kind, text) {
            self.messages(path, text);
        }
        Ok(())
    }

    fn log(&mut self, path: &str, text: &str) {
        self.messages(path, text);
        if Tree::of_terminal(text).is_some() {
            let line = format!("{path}: what it shows of the machine (give it with --root, too)");
            self.unresolved.push(line);
        }
    }

    /// What programs say in it.
    fn messages(&mut self, path: &str, text: &str) {
        let said = messages::said(path, text);
        self.kinds.extend(said.first().map(|_| FileKind::Log));
        self.said.extend(said);
    }

    /// What Docker gives containers that set nothing.
    fn docker(&mut self, path: &str, text: &str) {
        match dockerd::parse(path, text) {
            Ok(memlock) => self.memlock_of_docker = memlock.or_else(|| self.memlock_of_docker.take()),
            Err(refused) => self.refusals.push(refused),
        }
    }

    /// What a script writes, and what it starts.
    fn script(&mut self, path: &str, text: &str) -> Result<(), Unread> {
        let script = script::read(path, text);
        if script.is_empty() {
            return Err(empty(
                path,
                "no setting of huge pages and no known program is in this script",
            ));
        }
        self.run(script, path, text);
        Ok(())
    }

    fn run(&mut self, script: Script, path: &str, text: &str) {
        for setting in script.sysctl {
            self.sysctl_setting(setting);
        }
        self.policies_of(&script.sysfs);
        self.pools(script.pools);
        self.mounts.extend(script.mounts);
        let stray = script.grub.iter().filter(|(_, words)| grub::parameter(words).is_some());
        self.refusals
            .extend(stray.map(|(place, words)| kernel::on_no_line(place, words)));
        let (of_grub, cut) = kernel::of_script(path, &script.grub);
        self.refusals.extend(cut);
        for (place, words) in script.boot.into_iter().chain(of_grub) {
            self.push_boot(node::boot_line(place, &words));
        }
        self.unresolved
            .extend(script.unresolved.iter().map(ToString::to_string));
        if dpdk::is_ovs(text) {
            self.kinds.insert(FileKind::Dpdk);
            self.ovs.extend(dpdk::ovs(path, text));
        }
        script.starts.into_iter().for_each(|start| self.started(start));
    }

    /// A known program that a script starts.
    fn started(&mut self, start: Start) {
        // A guest without an option of memory has next to none.
        if start.from(is_hypervisor).is_some() {
            if let Ok(guest) = guest::of_start(&start) {
                self.kinds.insert(FileKind::Qemu);
                // One that is started anew is the same.
                let is_same = |own: &Guest| own.name == guest.name && own.memory == guest.memory;
                if guest.name == guest::UNNAMED || !self.guests.iter().any(is_same) {
                    self.guests.push(guest);
                }
            }
        } else if let Some(run) = compose::of_start(&start) {
            self.kinds.insert(FileKind::Compose);
            match run {
                Ok(run) => self.runs.push(run),
                Err(why) => self.garbled.push(why),
            }
        } else {
            self.kinds.extend(start.socket_mem().map(|_| FileKind::Dpdk));
            self.commands.push(start);
        }
    }

    fn manifest(&mut self, path: &str, text: &str) -> Result<(), Unread> {
        let read = manifest::parse(path, text, &mut self.garbled)?;
        if !read.pods.is_empty() {
            self.kinds.insert(FileKind::Pod);
        }
        self.pods.extend(read.pods);
        self.aligned = read.aligned.or_else(|| self.aligned.take());
        self.unresolved.extend(read.without_pod);
        for setup in read.nodes {
            self.setup(path, setup)?;
        }
        Ok(())
    }

    /// What a machine is set up with.
    fn setup(&mut self, path: &str, setup: Setup) -> Result<(), Unread> {
        for (path, kind, text) in setup.files {
            self.kinds.insert(kind);
            self.take(&path, &text, kind)?;
        }
        self.refusals.extend(setup.refused);
        setup.boot.into_iter().for_each(|line| self.push_boot(line));
        for setting in setup.sysctl {
            self.has_sysctl = true;
            self.sysctl_setting(sysctl_files::taken_as(setting));
        }
        self.written(&setup.sysfs);
        for profile in setup.profiles {
            self.profile(path, &profile);
        }
        if !setup.limits.is_empty() {
            self.kinds.insert(FileKind::Limits);
        }
        self.limits.extend(setup.limits);
        self.unresolved.extend(setup.unresolved);
        for (before, text) in setup.scripts {
            self.run(script::read_behind(path, &text, before), path, &text);
        }
        Ok(())
    }

    /// What a tool sets a machine up with. It shows the pools' sizes only where it sets one.
    fn provision(&mut self, path: &str, text: &str) -> Result<(), Unread> {
        let read = provision::parse(path, text);
        if provision::is_empty(&read) {
            return Err(empty(path, "no setting of huge pages is read in this file"));
        }
        let (had_sysctl, before) = (self.has_sysctl, self.unresolved.len());
        self.setup(path, read)?;
        let is_known = !self.unresolved[before..].iter().any(|line| line.contains("huge"));
        let sets_pool = self.sysctl.last(sysctl_files::POOL).is_some() || !self.pool_writes.is_empty();
        self.has_sysctl = had_sysctl || (is_known && sets_pool);
        Ok(())
    }

    fn sysctl(&mut self, path: &str, text: &str) {
        self.has_sysctl = true;
        for line in said(path, text, &['#', ';']) {
            self.sysctl_line(&line);
        }
        // Files of sysctl.d are applied by name, in whatever order they were given.
        let set = &mut self.sysctl.0;
        if set.iter().all(|set| in_sysctl_d(set).is_some()) {
            set.sort_by(|one, other| in_sysctl_d(one).cmp(&in_sysctl_d(other)));
        }
    }

    /// Lines of tmpfiles.d or sysfs.conf.
    fn written(&mut self, settings: &[Setting]) {
        self.policies_of(settings);
        self.pools(settings.iter().filter_map(PoolWrite::of));
    }

    /// The policies and surplus pages among them, and what the kernel refuses. A script has the writes of its pools apart, each with its turn.
    fn policies_of(&mut self, settings: &[Setting]) {
        self.garbled.extend(settings.iter().filter_map(written::refused));
        self.policies.extend(settings.iter().filter_map(policy::of_file));
        let surplus = settings.iter().filter(|setting| written::is_surplus(setting));
        self.sysctl.0.extend(surplus.cloned());
    }

    /// What is written to files of pools at boot.
    fn pools(&mut self, writes: impl IntoIterator<Item = PoolWrite>) {
        let before = self.pool_writes.len();
        self.pool_writes.extend(writes);
        if self.pool_writes.len() > before {
            self.kinds.insert(FileKind::Sysctl);
            self.has_sysctl = true;
        }
    }

    fn sysctl_line(&mut self, line: &Line<'_>) {
        match sysctl_files::setting(line) {
            Some(setting) => self.sysctl_setting(setting),
            // sysctl.d(5): `-name` alone takes a name out of the patterns before it.
            None if line.text.starts_with('-') => {}
            None => self.garbled.push(line.garbled("`name = value`")),
        }
    }

    fn sysctl_setting(&mut self, setting: Setting) {
        self.kinds.insert(FileKind::Sysctl);
        self.garbled.extend(sysctl_files::refused(&setting));
        self.sysctl.0.push(setting);
    }

    /// A profile of tuned: its sections of sysctl settings, of boot parameters and of the THP policy.
    fn profile(&mut self, path: &str, text: &str) {
        self.has_sysctl = true;
        self.kinds.insert(FileKind::Sysctl);
        let mut by_file = Vec::new();
        for set in tuned::sets(path, text) {
            match set {
                Set::Sysctl(line) => match tuned::setting(&line) {
                    Some(setting) => self.sysctl_setting(setting),
                    // What tuned works out leaves rules about it without an answer.
                    None => self.sysctl.0.extend(sysctl_files::setting(&line)),
                },
                Set::Policy(policy) => self.policies.push(policy),
                Set::Boot(place, words) => self.push_boot(BootLine::new(place, words)),
                Set::File(file) => by_file.push(file),
            }
        }
        self.written(&by_file);
    }

    fn limits(&mut self, path: &str, text: &str) {
        for line in said(path, text, &['#']) {
            let wanted = "`DOMAIN soft|hard|- ITEM VALUE`, memlock in KiB";
            match limits::limit_line(&line).filter(limits::is_known) {
                Some(limit) => self.limits.push(limit),
                None => self.garbled.push(line.garbled(wanted)),
            }
        }
    }

    fn boot_line(&mut self, path: &str, text: &str) -> Result<(), Unread> {
        let line = match kernel::is_wsl(path) {
            true => kernel::wsl(path, text, &mut self.refusals)?,
            false => kernel::boot_line(path, text, &mut self.refusals)?,
        };
        self.unresolved.extend(grub::unresolved(path, text));
        self.push_boot(line);
        Ok(())
    }

    fn push_boot(&mut self, mut line: BootLine) {
        self.kinds.insert(FileKind::Cmdline);
        line.boot = line.boot.without_gigantic();
        let policy = line.boot.thp.as_deref();
        let policy = policy.map(|value| policy::set(&line.place, value));
        self.policies.extend(policy);
        self.boot.push(line);
    }

    fn service(&mut self, path: &str, text: &str) {
        let name = service::name(path, text);
        let known = self.services.iter().position(|service| service.name == name);
        let at = known.unwrap_or_else(|| {
            self.services.push(Service::new(name));
            self.services.len() - 1
        });
        self.services[at].take(path, text, &mut self.garbled);
        self.services[at].unit.default_memlock.clone_from(&self.default_memlock);
        self.take_back(at);
        let texts = &self.services[at].texts;
        let mut refused = Vec::new();
        let written = commands::of_unit(texts, &mut refused);
        // Of several machines' units of one name it is not known whose drop-ins are whose.
        if texts.iter().filter(|(path, _)| !service::is_drop_in(path)).count() > 1 {
            refused.clear();
        }
        let is_early = texts.iter().all(|(path, text)| is_early(path, text));
        self.garbled.extend(refused.iter().cloned());
        self.policies
            .extend(written.settings.iter().filter_map(policy::of_file));
        if is_early {
            self.pools(written.settings.iter().filter_map(PoolWrite::of));
        }
        self.unresolved
            .extend(written.unresolved.iter().map(ToString::to_string));
        self.services[at].written = written;
        self.services[at].refused = refused;
    }

    /// Takes back what a service wrote before its next file: that may change all of it.
    fn take_back(&mut self, at: usize) {
        let Service { written, refused, .. } = &self.services[at];
        let is_old = |place: &str| written.settings.iter().any(|set| set.place == place);
        let is_open = |line: &String| written.unresolved.iter().any(|own| own.to_string() == *line);
        self.garbled.retain(|why| !refused.contains(why));
        self.policies.retain(|policy| !is_old(&policy.place));
        self.pool_writes.retain(|write| !is_old(&write.line.place));
        self.unresolved.retain(|line| !is_open(line));
    }
}

/// Is it a command of a program?
fn is_command(kind: FileKind, text: &str) -> bool {
    match kind {
        FileKind::Java | FileKind::Qemu | FileKind::Dpdk => true,
        FileKind::Compose => compose::is_command(text),
        _ => false,
    }
}

/// Whether a node of Elasticsearch locks its memory: by default it does not.
fn lock_in_file(path: &str, text: &str) -> Setting {
    in_file(path, text).unwrap_or_else(|| Setting::new(path, "bootstrap.memory_lock", "false"))
}

/// The name of the file of a directory sysctl.d that has a setting.
fn in_sysctl_d(set: &Setting) -> Option<&str> {
    let (path, _) = set.place.rsplit_once(':')?;
    let (directory, name) = path.rsplit_once('/')?;
    directory.ends_with("sysctl.d").then_some(name)
}

/// Are all commands of a unit in front of its program? Others come too late for it.
fn is_early(path: &str, text: &str) -> bool {
    let mut lines = said(path, text, &['#', ';']).filter_map(|line| line.pair());
    lines.all(|(key, _)| key != "ExecStartPost")
}
