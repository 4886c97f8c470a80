//! Files that a command line names: read, and joined, while Python imports the modules of the command.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use perfuse_formats::{Rate, Recording, registry};
use perfuse_workers::in_background;

use crate::profile::{Profile, ProfileOptions};
use crate::recordings::ProfileInput;

/// A file in the process of being opened.
struct Opening {
    path: String,
    recording: JoinHandle<Option<Arc<dyn Recording>>>,
}

static OPENING: Mutex<Vec<Opening>> = Mutex::new(Vec::new());

/// The profile of the only file, whose samples are being joined.
static JOINING: Mutex<Option<JoinHandle<Option<Arc<Profile>>>>> = Mutex::new(None);

/// Longest file that is joined before its profile is made: where that has other inputs or options, the join was made in vain.
const MOST_JOINED_BYTES: usize = 32 << 20;

/// Starts to open and read a file in a thread; [`take_opened`] with the same path waits for it. If the command joins samples, and has
/// this file and no options, the join is started too, for [`take_profile`]. A path that is not text is not opened.
pub fn begin_opening(path: PathBuf, joins: bool) {
    let Ok(path) = path.into_os_string().into_string() else { return };
    let name = path.clone();
    let recording = in_background(move || {
        let recording = registry::open(Arc::new(registry::read(&name).ok()?)).ok()?;
        begin_summary(&recording);
        if joins {
            let recording = Arc::clone(&recording);
            let profile = in_background(move || joining(recording));
            *JOINING.lock().unwrap_or_else(PoisonError::into_inner) = Some(profile);
        }
        Some(recording)
    });
    OPENING.lock().unwrap_or_else(PoisonError::into_inner).push(Opening { path, recording });
}

/// The recording that [`begin_opening`] opened; `None` where it was not called for the path or the file cannot be read.
#[must_use]
pub fn take_opened(path: &str) -> Option<Arc<dyn Recording>> {
    let mut all = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|opening| opening.path == path)?;
    let opening = all.swap_remove(at);
    drop(all);
    opening.recording.join().ok()?
}

/// Forgets what [`begin_opening`] opened of a path, for a caller who opens it with other limits.
pub fn forget_opened(path: &str) {
    drop(take_opened(path));
}

/// Starts the pass over the record headers in a thread; callers that need its result wait for it.
pub fn begin_summary(recording: &Arc<dyn Recording>) {
    let recording = Arc::clone(recording);
    drop(in_background(move || drop(recording.summary())));
}

/// The profile of these inputs and options: the one that [`begin_opening`] started to join if it has the same, else a new one.
#[must_use]
pub fn take_profile(inputs: Vec<ProfileInput>, options: ProfileOptions) -> Arc<Profile> {
    let joining = JOINING.lock().unwrap_or_else(PoisonError::into_inner).take();
    let joining = joining.and_then(|thread| thread.join().ok()?);
    let same = joining.filter(|profile| profile.is_of(&inputs, &options));
    same.unwrap_or_else(|| Arc::new(Profile::new(inputs, options)))
}

/// A profile of one recording of samples with the options that a command has by default; `None` where other files are probably
/// joined with it, such as dumps that its processes announced.
fn joining(recording: Arc<dyn Recording>) -> Option<Arc<Profile>> {
    let is_small = recording.source().len() <= MOST_JOINED_BYTES;
    if !is_small || !recording.fills("callchains") {
        return None;
    }
    let facts = recording.sampling_facts().filter(|facts| facts.markers.is_empty())?;
    let recorded_on = facts.hostname.zip(facts.os_release);
    let clock = recording.clock(Rate::Auto);
    let input = ProfileInput { recording, clock, pid: None, nth_of_pid: Arc::default(), definitions: None };
    let options = ProfileOptions { debug_info: true, recorded_on, ..ProfileOptions::default() };
    let profile = Arc::new(Profile::new(vec![input], options));
    profile.start_join(true);
    Some(profile)
}
