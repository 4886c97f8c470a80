use super::map::Function;
use super::map_file::MapFile;
use super::object_maps::ObjectMaps;

/// How many bits of a function's id a log keeps. With libraries the upper 8 of all 32 are the object's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeIds {
    /// FDR mode: of the object 4 bits are left, so that object 16 has the ids of object 0.
    Bits28,
    /// Basic and profiling mode.
    Bits32,
}

const FUNCTION_BITS: u32 = 24;

impl NativeIds {
    /// The id as the log has it; `None` for numbers it has no room for. A signed id, negative for objects from 128 on, is
    /// the same as its unsigned reading.
    fn kept(self, native_id: u64) -> Option<u32> {
        let id = u32::try_from(native_id).ok();
        let id = id.or_else(|| i32::try_from(native_id as i64).ok().map(|id| id as u32))?;
        match self {
            Self::Bits28 => (id >> 28 == 0).then_some(id),
            Self::Bits32 => Some(id),
        }
    }

    /// Whether a log that says object `kept` may mean this one.
    pub(super) fn may_mean(self, kept: u8, object: u8) -> bool {
        match self {
            Self::Bits28 => kept == object % 16,
            Self::Bits32 => kept == object,
        }
    }
}

/// What an id may stand for.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    /// The object's number, as far as the log has it.
    pub(super) object: u8,
    /// The function's number in its object.
    pub(super) function: u32,
    /// Objects it may be of, by number, that have a map.
    pub(super) objects: Vec<(u8, &'a MapFile)>,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(native_id: u64, ids: NativeIds, maps: &'a ObjectMaps) -> Option<Self> {
        let id = ids.kept(native_id)?;
        let (object, function) = ((id >> FUNCTION_BITS) as u8, id & ((1 << FUNCTION_BITS) - 1));
        if let Some(program) = maps.get(0).filter(|_| maps.is_program_alone()) {
            // A program without libraries may have any number of functions.
            if object == 0 || program.map().function(id).is_some() {
                return Some(Self { object: 0, function: id, objects: vec![(0, program)] });
            }
        }
        let objects = maps.iter().filter(|(number, _)| ids.may_mean(object, *number)).collect();
        Some(Self { object, function, objects })
    }

    /// The functions it may be.
    pub(super) fn functions(&self) -> impl Iterator<Item = (u8, &'a MapFile, &'a Function)> + '_ {
        let function =
            |&(object, file): &(u8, &'a MapFile)| Some((object, file, file.map().function(self.function)?));
        self.objects.iter().filter_map(function)
    }
}
