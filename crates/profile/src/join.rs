//! Samples joined with the code they are of.

use std::path::PathBuf;

use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_engine::code_map::CodeMap;
use perfuse_engine::join::{self, CodeLines, CodeNames, NativeNames, PerfMaps, Places};
use perfuse_engine::mappings::Mappings;
use perfuse_engine::unwind::{Chains, Modules, Unwinder};
use perfuse_formats::TableRequest;
use perfuse_formats::perf_data::PerfData;
use perfuse_tables::access::ColumnError;

use crate::fusion::{Fusion, Placed};
use crate::unwinding::{KnownFormats, unwind_and_locate};

impl Fusion {
    pub fn joined(&self) -> Result<&join::Tables, ColumnError> {
        self.joined.get_or_init(|| self.join()).as_ref().map_err(|error| *error)
    }

    fn join(&self) -> Result<join::Tables, ColumnError> {
        let everything = TableRequest::default();
        let mapping_rows = self.collect("mappings", &everything);
        let code_objects = self.collect("code_objects", &everything);
        let code_moves = self.collect("code_moves", &everything);
        let codes = CodeMap::new(&code_objects, &code_moves)?;
        let names = CodeNames::new(&code_objects)?;
        let mappings = Mappings::new(&mapping_rows)?;
        let symbol_dirs = self.symbol_dirs.clone();
        let symbolizer = Symbolizer::new(Options {
            symbol_dirs,
            debug: self.debug_info,
            recorded_on: self.recorded_on.clone(),
            ..Options::default()
        });
        let places = Places { codes: &codes, mappings: &mappings };
        let located = if self.has_user_stacks() {
            let formats = KnownFormats { placed: &self.placed };
            let modules = Modules::new(places, &symbolizer, &formats);
            let (located, totals) =
                unwind_and_locate(Unwinder::new(&modules), self.stream("callchains", false), places);
            let _ = self.unwound.set(totals);
            located?
        } else {
            join::locate(self.stream("callchains", false).map(|batch| Ok(Chains::from(batch))), places)?
        };
        let hit =
            TableRequest { code_objects: Some(located.code_objects.clone()), ..TableRequest::default() };
        let lines = CodeLines::new(self.collect("line_rows", &hit), self.collect("inline_calls", &hit))?;
        let perf_maps = self.perf_maps();
        let native = NativeNames { symbolizer: &symbolizer, perf_maps: &perf_maps };
        let resolution = join::resolve(&located, &mappings, &names, &lines, &native)?;
        join::emit(&located, &resolution, &mappings, self.after)
    }

    /// Whether any samples have copies of their stacks.
    pub fn has_user_stacks(&self) -> bool {
        let perf = |placed: &Placed| {
            placed.recording().as_any().downcast_ref::<PerfData>().is_some_and(|it| it.num_user_stacks() > 0)
        };
        self.placed.iter().any(perf)
    }

    /// Maps lie where the user says, beside the recordings, or where runtimes write them.
    fn perf_maps(&self) -> PerfMaps {
        let beside = self
            .placed
            .iter()
            .filter_map(|p| PathBuf::from(&p.recording().source().path).parent().map(PathBuf::from));
        let dirs = self.symbol_dirs.iter().cloned().chain(beside).chain([PathBuf::from("/tmp")]).collect();
        PerfMaps::new(dirs, self.pids())
    }
}
