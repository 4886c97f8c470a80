use std::io;
use std::path::Path;
use std::sync::Arc;

use object::Object;

use super::build_id::BuildId;
use super::elf_module::is_stripped;
use super::image::Image;
use super::search_path::SearchPath;

/// Opens the file recorded as `path`, refusing every file that is not the one that ran.
///
/// # Errors
/// Why there is none: the first refusal, or that nothing was found.
pub(crate) fn find_image(
    search: &SearchPath,
    path: &str,
    deleted: bool,
    build_id: Option<&BuildId>,
) -> Result<Arc<Image>, Arc<str>> {
    if deleted && build_id.is_none() {
        return Err("the file was deleted while recording, and its build id was not recorded".into());
    }
    let mut refusal = None;
    for candidate in search.images(path, build_id) {
        match open_elf(&candidate, build_id) {
            Ok(image) => return Ok(Arc::new(image)),
            Err(Refusal::Absent) => {}
            Err(Refusal::Because(reason)) => refusal = refusal.or(Some(reason)),
        }
    }
    Err(refusal.unwrap_or_else(|| "module file not found".into()))
}

/// Opens the first of several files whose build id is the one given.
pub(crate) fn first_with_id(candidates: &[impl AsRef<Path>], build_id: &BuildId) -> Option<Arc<Image>> {
    candidates.iter().find_map(|candidate| open_elf(candidate.as_ref(), Some(build_id)).ok().map(Arc::new))
}

/// The separate debug file of a stripped image: by its build id, else by its `.gnu_debuglink`.
pub(crate) fn find_debug_image(search: &SearchPath, image: &Image, with_dwarf: bool) -> Option<Arc<Image>> {
    let elf = image.elf().ok()?;
    if !is_stripped(&elf, with_dwarf) {
        return None;
    }
    let id = BuildId::of(&elf);
    if let Some(id) = &id
        && let Some(found) = first_with_id(&search.debug_files(id), id)
    {
        return Some(found);
    }
    let (link, crc) = elf.gnu_debuglink().ok()??;
    let candidates = search.linked_debug_files(&image.path, std::str::from_utf8(link).ok()?);
    // The link of a file that is its own debug file leads to itself.
    let mut others = candidates.iter().filter(|candidate| **candidate != image.path);
    others.find_map(|candidate| {
        let debug = open_elf(candidate, None).ok()?;
        let is_its = match (&id, debug.build_id()) {
            (Some(id), Some(other)) => id.matches(&other),
            _ => crc32(&debug) == crc,
        };
        is_its.then(|| Arc::new(debug))
    })
}

/// The file that dwz moved common parts of several debug files to.
pub(crate) fn find_supplement(search: &SearchPath, image: &Image) -> Option<Arc<Image>> {
    let elf = image.elf().ok()?;
    let (path, id) = elf.gnu_debugaltlink().ok()??;
    let (path, id) = (Path::new(std::str::from_utf8(path).ok()?), BuildId::new(id)?);
    let beside = image.path.parent()?.join(path);
    first_with_id(&[beside], &id).or_else(|| first_with_id(&search.debug_files(&id), &id))
}

enum Refusal {
    Absent,
    Because(Arc<str>),
}

fn open_elf(path: &Path, wanted: Option<&BuildId>) -> Result<Image, Refusal> {
    let because = |reason: String| Refusal::Because(reason.into());
    let image = Image::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refusal::Absent,
        // A build-id directory is a directory in newer caches and a file in older ones.
        io::ErrorKind::InvalidInput => Refusal::Absent,
        _ => because(format!("module file cannot be read: {error}")),
    })?;
    let elf = image.elf().map_err(|error| because(format!("not a readable ELF file: {error}")))?;
    let found = BuildId::of(&elf);
    match (wanted, found) {
        (Some(wanted), Some(found)) if !wanted.matches(&found) => {
            Err(because(format!("build id differs: the file here has {found}, the recorded one {wanted}")))
        }
        (Some(wanted), None) => {
            Err(because(format!("the file here has no build id, the recorded one {wanted}")))
        }
        _ => Ok(image),
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
