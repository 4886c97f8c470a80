//! Damaged files: each gives a result and no panic.

use perfuse_binaries::symbolize::Module;

use crate::program::{Scratch, functions, symbolizer, text};

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn look_at_all(module: &Module, positions: &[u64]) -> usize {
    module.resolve_many(positions).iter().map(|found| found.frames.len()).sum()
}

#[test]
fn flipped_bytes_do_no_harm() {
    let scratch = Scratch::new("flipped");
    for (name, flags) in [("plain", &["-g"][..]), ("packed", &["-g", "-gz=zlib"]), ("old", &["-gdwarf-3"])] {
        let program = scratch.compile(name, flags);
        let positions: Vec<u64> =
            functions(&program, &[]).iter().map(|function| function.address + 1).collect();
        let whole = std::fs::read(&program).expect("the program");
        let intact = look_at_all(&symbolizer(true).module(text(&program), None), &positions);
        assert!(intact >= positions.len(), "{name}: {intact} frames");
        let mut random = Random(0x5eed ^ whole.len() as u64);
        for round in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(24) {
                // Headers are small and matter most.
                let reach = [64, 1024, bytes.len()][random.below(3)];
                let from_end = random.below(2) == 0;
                let at = random.below(reach);
                let at = if from_end { bytes.len() - 1 - at } else { at };
                bytes[at] = [0, 0xff, 0x7f, 0x80, random.below(256) as u8][random.below(5)];
            }
            let damaged = scratch.0.join(format!("{name}-{round}"));
            std::fs::write(&damaged, &bytes).expect("a damaged program");
            let module = symbolizer(true).module(text(&damaged), None);
            assert!(look_at_all(&module, &positions) < 1000 * positions.len(), "{name} {round}");
            std::fs::remove_file(&damaged).expect("removed");
        }
    }
}

#[test]
fn cut_files_do_no_harm() {
    let scratch = Scratch::new("cut");
    let program = scratch.compile("shapes", &["-g"]);
    let whole = std::fs::read(&program).expect("the program");
    let positions: Vec<u64> = functions(&program, &[]).iter().map(|function| function.address).collect();
    let mut random = Random(7);
    let cut = scratch.0.join("cut");
    for len in (0..64).chain((0..150).map(|_| random.below(whole.len()))) {
        std::fs::write(&cut, &whole[..len]).expect("a cut program");
        let module = symbolizer(true).module(text(&cut), None);
        for found in module.resolve_many(&positions) {
            assert!(!found.frames.is_empty() || found.unnamed_because.is_some(), "{len}");
        }
    }
}
