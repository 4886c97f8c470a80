//! Kernels, whose symbols are lists, or files linked for another place.

use std::process::Command;

use perfuse_binaries::symbolize::Symbolizer;

use crate::program::{Scratch, build_id, functions, options, run, symbolizer, text};

const ID: &str = "abcdefabcdefabcdefabcdefabcdefabcdefabcd";
const PATH: &str = "[kernel.kallsyms]_text";
const TEXT: u64 = 0xffff_ffff_8100_0000;

fn with_cached_list(scratch: &Scratch) -> Symbolizer {
    let dir = scratch.0.join(format!(".build-id/{}/{}", &ID[..2], &ID[2..]));
    std::fs::create_dir_all(&dir).expect("a directory");
    let list = "ffffffff81000000 T _text\nffffffff81000040 t do_work\nffffffff81000080 D some_data\n";
    std::fs::write(dir.join("kallsyms"), list).expect("a list");
    let mut options = options(true);
    options.build_id_dirs.push(scratch.0.clone());
    Symbolizer::new(options)
}

#[test]
fn a_cached_list_names_the_kernel() {
    let scratch = Scratch::new("kallsyms");
    let symbolizer = with_cached_list(&scratch);
    let kernel = symbolizer.kernel(PATH, Some(ID), Some(TEXT));
    let at = kernel.position(TEXT + 0x44, TEXT, TEXT);
    assert_eq!(&*kernel.resolve(at).frames[0].name, "do_work");
    assert!(kernel.resolve(TEXT + 0x80).unnamed_because.is_some(), "data");

    let slid = symbolizer.kernel(PATH, Some(ID), Some(TEXT + 0x1e0_0000));
    assert_eq!(&*slid.resolve(TEXT + 0x1e0_0044).frames[0].name, "do_work", "after another boot");
}

#[test]
fn a_kernel_that_is_not_this_one_is_not_guessed() {
    let scratch = Scratch::new("other-kernel");
    let symbolizer = with_cached_list(&scratch);
    for (path, id) in [
        (PATH, None),
        (PATH, Some("00112233445566778899aabbccddeeff00112233")),
        ("[guest.kernel.kallsyms]", None),
    ] {
        let reason = symbolizer.kernel(path, id, Some(TEXT)).resolve(TEXT).unnamed_because;
        assert!(reason.is_some(), "{path} {id:?}");
    }
    let live = Symbolizer::new(perfuse_binaries::symbolize::Options { live_kernel: true, ..options(false) });
    let reason = live.kernel(PATH, Some(ID), Some(TEXT)).resolve(TEXT).unnamed_because.expect("a reason");
    assert!(reason.contains("another kernel") || reason.contains("not found"), "{reason}");
    let vdso = live.module("[vdso]", Some(ID)).resolve(0).unnamed_because.expect("a reason");
    assert!(vdso.contains("build id differs"), "{vdso}");
}

#[test]
fn a_vmlinux_is_slid_to_where_it_was_loaded() {
    let scratch = Scratch::new("vmlinux");
    let program = scratch.compile("vmlinux", &["-g", "-no-pie"]);
    let find = |name: &str| {
        functions(&program, &[]).into_iter().find(|function| function.name == name).expect("there")
    };
    let (main, plain) = (find("main"), find("plain"));
    let mut options = options(true);
    options.symbol_dirs.push(scratch.0.clone());
    let symbolizer = Symbolizer::new(options);
    let id = build_id(&program);
    // Any function serves as the reference symbol; a kernel's is `_text`.
    let kernel = symbolizer.kernel("[kernel.kallsyms]main", Some(&id), Some(main.address + TEXT));
    let found = kernel.resolve(plain.address + TEXT);
    assert_eq!(&*found.frames[0].name, "plain");
    assert!(found.frames[0].line.is_some(), "{found:?}");
    assert_eq!(found.relative_address, Some(plain.address));
    let unplaced = symbolizer.kernel("[kernel.kallsyms]main", Some(&id), None);
    assert!(unplaced.unnamed_because().is_some_and(|reason| reason.contains("where the kernel was loaded")));
}

#[test]
fn a_module_file_is_laid_out_as_the_kernel_loads_it() {
    let scratch = Scratch::new("ko");
    let source = scratch.0.join("mod.c");
    let code = "__attribute__((section(\".init.text\"))) int start(void) { return 1; }\n\
                int first(int x) { return x * 3 + 1; }\n\
                __attribute__((section(\".text.unlikely\"))) int cold(int x) { return x / 3; }\n";
    std::fs::write(&source, code).expect("the source");
    let (object, module) = (scratch.0.join("mod.o"), scratch.0.join("mod.ko"));
    run(Command::new("cc").args(["-O2", "-ffunction-sections", "-c"]).arg(&source).arg("-o").arg(&object));
    run(Command::new("ld").args(["-r", "--build-id=sha1"]).arg(&object).arg("-o").arg(&module));
    let found = symbolizer(true).module(text(&module), Some(&build_id(&module)));
    let names: Vec<String> =
        (0..64).filter_map(|offset| Some(found.resolve(offset).frames.first()?.name.to_string())).collect();
    assert!(names.contains(&"first".to_owned()) && names.contains(&"cold".to_owned()), "{names:?} {found:?}");
    assert!(!names.contains(&"start".to_owned()), "{names:?}");
}
