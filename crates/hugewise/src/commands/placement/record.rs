//! `hugewise placement record`: one program under record, kept in the output file while it runs.

use anyhow::bail;
use host::Snapshot;
use model::placement::{End, Recording};
use placement::{Ordered, Spec};

use super::super::session::Session;
use crate::cli::args::{self, Format};
use crate::render::prove::placement::warnings;
use crate::stop;
use crate::ui::Outcome;

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &args::Record) -> anyhow::Result<Outcome> {
    session.must_be_live("recording")?;
    let form = session.form::<Recording>()?;
    let snapshot = Snapshot::take(&session.source);
    if snapshot.topology.cpus.is_empty() {
        bail!("which CPUs are online could not be read from /sys/devices/system/cpu: a recording needs /sys mounted");
    }
    let spec = Spec {
        ordered: match args.pid {
            Some(pid) => Ordered::Attach(pid),
            None => Ordered::Start(&args.command),
        },
        time: args.time,
        is_light: args.light,
    };
    stop::on_signals()?;
    session.ui.note(match args.pid {
        Some(_) => "recording until the process ends or Ctrl-C",
        None => "recording until the program ends",
    });
    let mut kept = Kept {
        is_wanted: session.ui.has_file() && form == Format::Json,
        ..Kept::default()
    };
    let mut so_far = |recording: Recording| kept.keep(session, &snapshot, recording);
    let recording = placement::record(&spec, &snapshot, &stop::is_asked, &mut so_far)?;
    let is_interrupted = recording.end == End::Interrupted && args.pid.is_none();
    let given = session.give_about(&snapshot, warnings(&recording, &snapshot), recording, form);
    let given = given.map_err(|error| match kept.seconds {
        Some(seconds) => error.context(format!("the file holds the recording of the first {seconds:.1} s")),
        None => error,
    })?;
    Ok(if is_interrupted { Outcome::Interrupted } else { given })
}

/// The recording so far in the output file, so that it is there if this program is killed or the disk is full at the end.
#[derive(Default)]
struct Kept {
    is_wanted: bool,
    /// How much of it the file holds.
    seconds: Option<f64>,
    is_said: bool,
}

impl Kept {
    /// A file that could not be written may be the next time, when there is room again.
    fn keep(&mut self, session: &mut Session<'_>, snapshot: &Snapshot, recording: Recording) {
        if !self.is_wanted {
            return;
        }
        let seconds = recording.seconds;
        let result = session.about(snapshot, warnings(&recording, snapshot), recording);
        let look = session.ui.look();
        match session.print(&result, Format::Json, look) {
            Ok(_) => self.seconds = Some(seconds),
            Err(error) if !self.is_said => {
                self.is_said = true;
                let text = format!("the recording so far could not be kept, and goes on: {error:#}");
                session.ui.say(&text);
            }
            Err(_) => {}
        }
    }
}
