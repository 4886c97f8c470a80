//! A profile small enough to know by heart.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{Array, ArrayAccessor, RecordBatch, StringArray};
use perfuse_tables as t;

use super::{
    CallTree, CallTreeOptions, CodeOrigin, SampledEvent, StackError, StackStep, StackTables, StackTransform,
    UnnamedFrames, WeightGrouping, call_tree, frame_names, sampled_events,
};
use crate::NONE;

const MAIN: u32 = 0;
const FIB_COLD: u32 = 1;
const FIB_HOT: u32 = 2;
const SYSCALL: u32 = 3;
const UNNAMED: u32 = 4;
const INLINED: u32 = 5;

fn frames() -> RecordBatch {
    let mut frames = t::frames::Builder::new();
    let mut push = |function, code, mapping, depth, kind, reason| {
        frames.push(
            frames.len() as u32,
            function,
            code,
            mapping,
            Some(64),
            None,
            None,
            None,
            None,
            depth,
            kind,
            "sampled",
            reason,
        );
    };
    push(Some(0), None, Some(0), 0, "native", None);
    push(Some(1), Some(0), None, 0, "jit", None);
    push(Some(1), Some(1), None, 0, "jit", None);
    push(Some(2), None, None, 0, "kernel", None);
    push(None, None, Some(0), 0, "native", Some("no symbol covers this address"));
    push(Some(3), Some(1), None, 1, "jit", None);
    frames.finish()
}

/// `stacks` as (parent, frame), `samples` as (thread, stack, weight, time).
fn tables(stacks: &[(Option<u32>, u32)], samples: &[(u32, Option<u32>, u64, i64)]) -> StackTables {
    let mut modules = t::modules::Builder::new();
    modules.push(0, "/opt/app", "native", None);
    modules.push(1, "[jit] app", "jit", None);
    let mut mappings = t::mappings::Builder::new();
    mappings.push(0, Some(0), None, 0, 4096, 0, "/opt/app", None, true, 0, 0);
    let mut functions = t::functions::Builder::new();
    functions.push(0, None, "main", "main", Some(0), Some("app.c"), Some(3), None);
    functions.push(1, None, "fib", "JS:*fib", Some(1), Some("app.js"), Some(7), Some(1));
    functions.push(2, None, "sys_read", "sys_read", None, None, None, None);
    functions.push(3, None, "add", "add", Some(1), Some("app.js"), Some(2), None);
    let mut code_objects = t::code_objects::Builder::new();
    code_objects.push(0, 1, 0, None, "jit", Some("ignition"), 0, None, 0, 64, None, 0, 1, 0);
    code_objects.push(1, 1, 0, None, "jit", Some("turbofan"), 0, None, 64, 64, None, 1, 1, 0);
    let mut threads = t::threads::Builder::new();
    threads.push(0, 0, Some(10), None, Some("app"), None, None);
    threads.push(1, 1, Some(11), None, Some("worker"), None, None);
    let mut all_stacks = t::stacks::Builder::new();
    for (number, &(parent, frame)) in stacks.iter().enumerate() {
        all_stacks.push(number as u32, parent, frame, 0);
    }
    let mut all_samples = t::samples::Builder::new();
    for (number, &(thread, stack, weight, ts_ns)) in samples.iter().enumerate() {
        let event = if thread == 0 { "cpu-clock" } else { "page-faults" };
        all_samples.push(number as u64, ts_ns, thread, None, stack, weight, "ns", event, 0, 0);
    }
    StackTables {
        samples: vec![all_samples.finish()],
        stacks: vec![all_stacks.finish()],
        frames: vec![frames()],
        functions: vec![functions.finish()],
        code_objects: vec![code_objects.finish()],
        modules: vec![modules.finish()],
        mappings: vec![mappings.finish()],
        threads: vec![threads.finish()],
    }
}

/// `main > fib > fib(hot) > sys_read`, `main > [unknown]`, and a sample without a stack.
fn small() -> StackTables {
    let stacks = [
        (None, MAIN),
        (Some(0), FIB_COLD),
        (Some(1), FIB_HOT),
        (Some(2), SYSCALL),
        (Some(0), UNNAMED),
        (Some(2), INLINED),
    ];
    let samples = [
        (0, Some(3), 10, 0),
        (0, Some(2), 5, 1),
        (1, Some(3), 7, 2),
        (0, Some(4), 2, 3),
        (1, None, 1, 4),
        (0, Some(5), 4, 5),
    ];
    tables(&stacks, &samples)
}

/// A line a node: indent, name, origin, self and total.
fn picture(tree: &CallTree) -> Vec<String> {
    let mut depths: Vec<usize> = Vec::new();
    let line = |node: &super::CallNode| {
        let depth = if node.parent == NONE { 0 } else { depths[node.parent as usize] + 1 };
        depths.push(depth);
        let symbol = &tree.symbols().all()[node.symbol as usize];
        let thread = if node.thread == NONE { String::new() } else { format!(" thread {}", node.thread) };
        let (name, origin) = (tree.symbols().name(node.symbol), symbol.origin.name());
        format!("{}{name} ({origin}) {}/{}{thread}", "  ".repeat(depth), node.self_weight, node.total_weight)
    };
    tree.nodes().iter().map(line).collect()
}

fn options() -> CallTreeOptions {
    CallTreeOptions::default()
}

fn weights(tree: &CallTree, by: WeightGrouping) -> Vec<(Option<String>, u64, u64)> {
    let batch = tree.weights(by);
    let names = batch.column_by_name("name").unwrap().as_string::<i32>().clone();
    let column = |name| batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>().clone();
    let (own, total) = (column("self_weight"), column("total_weight"));
    let name = |row| names.is_valid(row).then(|| names.value(row).to_owned());
    (0..batch.num_rows()).map(|row| (name(row), own.value(row), total.value(row))).collect()
}

#[test]
fn callees_hang_below_their_callers_heaviest_first() {
    let tree = call_tree(&small(), &options()).unwrap();
    assert_eq!(
        picture(&tree),
        [
            "main (native) 0/28",
            "  fib (interpreter) 0/26",
            "    fib (optimised) 5/26",
            "      sys_read (kernel) 17/17",
            "      add (inlined) 4/4",
            "  [unknown] app (unknown) 2/2",
            "[no stack] (unknown) 1/1",
        ]
    );
    assert_eq!((tree.total_weight(), tree.total_samples()), (29, 6));
}

#[test]
fn callers_hang_below_what_they_called() {
    let tree = call_tree(&small(), &CallTreeOptions { inverted: true, ..options() }).unwrap();
    assert_eq!(
        picture(&tree),
        [
            "sys_read (kernel) 0/17",
            "  fib (optimised) 0/17",
            "    fib (interpreter) 0/17",
            "      main (native) 17/17",
            "fib (optimised) 0/5",
            "  fib (interpreter) 0/5",
            "    main (native) 5/5",
            "add (inlined) 0/4",
            "  fib (optimised) 0/4",
            "    fib (interpreter) 0/4",
            "      main (native) 4/4",
            "[unknown] app (unknown) 0/2",
            "  main (native) 2/2",
            "[no stack] (unknown) 1/1",
        ]
    );
}

#[test]
fn threads_have_roots_of_their_own() {
    let tree = call_tree(&small(), &CallTreeOptions { split_threads: true, ..options() }).unwrap();
    let roots: Vec<_> = picture(&tree).into_iter().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        roots,
        ["main (native) 0/21 thread 0", "main (native) 0/7 thread 1", "[no stack] (unknown) 1/1 thread 1"]
    );
    let by_thread = tree.weights(WeightGrouping::Thread);
    assert_eq!(
        by_thread.column_by_name("self_weight").unwrap().as_primitive::<UInt64Type>().values(),
        &[21, 8]
    );
}

#[test]
fn direct_recursion_can_be_one_node() {
    let tables = tables(
        &[(None, MAIN), (Some(0), FIB_HOT), (Some(1), FIB_HOT), (Some(2), FIB_HOT), (Some(3), MAIN)],
        &[(0, Some(3), 3, 0), (0, Some(1), 1, 1), (0, Some(4), 5, 2)],
    );
    let tree = call_tree(&tables, &CallTreeOptions { merge_recursion: true, ..options() }).unwrap();
    assert_eq!(picture(&tree), ["main (native) 0/9", "  fib (optimised) 4/9", "    main (native) 5/5"]);
}

#[test]
fn filters_choose_samples() {
    let total = |options| call_tree(&small(), &options).unwrap().total_weight();
    assert_eq!(total(CallTreeOptions { threads: Some(vec![1]), ..options() }), 8);
    assert_eq!(total(CallTreeOptions { processes: Some(vec![0]), ..options() }), 21);
    assert_eq!(total(CallTreeOptions { processes: Some(vec![0]), threads: Some(vec![1]), ..options() }), 0);
    assert_eq!(total(CallTreeOptions { event: Some("cpu-clock".into()), ..options() }), 21);
    assert_eq!(total(CallTreeOptions { event: Some("cycles".into()), ..options() }), 0);
    assert_eq!(total(CallTreeOptions { time_ns: Some(1..3), ..options() }), 12);
}

#[test]
fn light_nodes_are_left_out_but_their_weight_is_not() {
    let tree = call_tree(&small(), &CallTreeOptions { min_share: 0.2, ..options() }).unwrap();
    assert_eq!(
        picture(&tree),
        [
            "main (native) 0/28",
            "  fib (interpreter) 0/26",
            "    fib (optimised) 5/26",
            "      sys_read (kernel) 17/17"
        ]
    );
    let inverted =
        call_tree(&small(), &CallTreeOptions { min_share: 0.5, inverted: true, ..options() }).unwrap();
    assert_eq!(inverted.nodes().len(), 4);
    assert_eq!(inverted.total_weight(), 29);
}

#[test]
fn a_recursive_function_counts_once_per_stack() {
    let tree = call_tree(&small(), &options()).unwrap();
    let row = |name: &str, own, total| (Some(name.to_owned()), own, total);
    assert_eq!(
        weights(&tree, WeightGrouping::Function),
        [
            row("sys_read", 17, 17),
            row("fib", 5, 26),
            row("add", 4, 4),
            row("[unknown] app", 2, 2),
            row("[no stack]", 1, 1),
            row("main", 0, 28)
        ]
    );
    assert_eq!(
        weights(&tree, WeightGrouping::Tiered)
            .iter()
            .filter(|(name, ..)| name.as_deref() == Some("fib"))
            .count(),
        2
    );
    assert_eq!(
        weights(&tree, WeightGrouping::Module),
        [(None, 18, 18), row("[jit] app", 9, 26), row("/opt/app", 2, 28)]
    );
    assert_eq!(
        weights(&tree, WeightGrouping::Tier),
        [
            row("kernel", 17, 17),
            row("turbofan", 9, 26),
            row("native", 2, 28),
            row("unknown", 1, 1),
            row("ignition", 0, 26)
        ]
    );
    assert_eq!(weights(&tree, WeightGrouping::Origin)[0], row("kernel", 17, 17));
    assert_eq!(
        weights(&tree, WeightGrouping::Reason),
        [row("no symbol covers this address", 2, 2), row("no address was recorded", 1, 1)]
    );
}

#[test]
fn events_have_their_sums_and_times() {
    let event = |name: &str, samples, weight, first_ns, last_ns| SampledEvent {
        name: name.to_owned(),
        unit: "ns".to_owned(),
        samples,
        weight,
        first_ns,
        last_ns,
    };
    let samples = small().samples;
    assert_eq!(
        sampled_events(&samples).unwrap(),
        [event("cpu-clock", 4, 21, 0, 5), event("page-faults", 2, 8, 2, 4)]
    );
    // Batches number their texts each for themselves.
    let halves = [samples[0].slice(2, 4), samples[0].slice(0, 2)];
    assert_eq!(
        sampled_events(&halves).unwrap(),
        [event("page-faults", 2, 8, 2, 4), event("cpu-clock", 4, 21, 0, 5)]
    );
    assert_eq!(sampled_events(&[]).unwrap(), []);
    assert!(sampled_events(&small().stacks).is_err());
}

#[test]
fn what_has_no_name_is_counted_by_reason_without_samples_that_have_no_frame() {
    let unnamed = |leaf_samples| UnnamedFrames {
        reason: "no symbol covers this address".to_owned(),
        module: "/opt/app".to_owned(),
        frames: 1,
        leaf_samples,
    };
    assert_eq!(call_tree(&small(), &options()).unwrap().unnamed(), [unnamed(1)]);
    let other = CallTreeOptions { event: Some("page-faults".to_owned()), ..options() };
    assert_eq!(call_tree(&small(), &other).unwrap().unnamed(), [unnamed(0)]);
}

#[test]
fn the_viewer_can_rebuild_the_tree_from_its_bytes() {
    let tree = call_tree(&small(), &CallTreeOptions { split_threads: true, ..options() }).unwrap();
    let (bytes, num) = (tree.to_bytes(), tree.nodes().len());
    let word = |at: usize| u32::from_le_bytes(bytes[at * 4..at * 4 + 4].try_into().unwrap());
    let weights = (num * 16).next_multiple_of(8);
    assert_eq!(bytes.len(), weights + num * 8);
    for (number, node) in tree.nodes().iter().enumerate() {
        let parent = if node.parent == NONE { 0 } else { number as u32 - node.parent };
        let samples = node.self_samples as u32;
        assert_eq!(
            [0, 1, 2, 3].map(|column| word(column * num + number)),
            [parent, node.symbol, node.thread, samples]
        );
        let weight = &bytes[weights + number * 8..weights + number * 8 + 8];
        assert_eq!(f64::from_le_bytes(weight.try_into().unwrap()), node.self_weight as f64);
    }
}

#[test]
fn sums_saturate_rather_than_overflow() {
    let tree = call_tree(
        &tables(
            &[(None, MAIN), (None, FIB_HOT)],
            &[(0, Some(0), u64::MAX, 0), (0, Some(0), 9, 0), (0, Some(1), 9, 0)],
        ),
        &options(),
    );
    assert_eq!(tree.unwrap().total_weight(), u64::MAX);
}

#[test]
fn inconsistent_tables_are_errors() {
    let error = |tables: &StackTables| call_tree(tables, &options()).unwrap_err();
    let forward = tables(&[(Some(1), MAIN), (None, MAIN)], &[]);
    assert_eq!(error(&forward), StackError::Reference { table: "stacks", column: "parent_stack_id", key: 1 });
    let frame = tables(&[(None, 99)], &[]);
    assert_eq!(error(&frame), StackError::Reference { table: "stacks", column: "frame_id", key: 99 });
    let stack = tables(&[(None, MAIN)], &[(0, Some(5), 1, 0)]);
    assert_eq!(
        error(&stack).to_string(),
        "samples.stack_id is 5, which is not the key of a row that it can refer to"
    );
    let swapped = StackTables { samples: small().stacks, ..small() };
    assert_eq!(error(&swapped), StackError::Column { table: "samples", column: "weight", found: None });
}

/// The stacks of the samples after some steps, as names, with their weights.
fn transformed(steps: impl Fn(&mut StackTransform)) -> Vec<(String, u64)> {
    let all = tables(
        &[(None, 0), (Some(0), 1), (Some(1), 2), (Some(2), 3), (Some(0), 4), (Some(4), 5)],
        &[
            (0, Some(0), 1, 0),
            (0, Some(2), 10, 1),
            (0, Some(3), 100, 2),
            (1, Some(5), 1000, 3),
            (1, None, 10_000, 4),
        ],
    );
    let mut transform = StackTransform::new(all.clone()).unwrap();
    steps(&mut transform);
    let samples =
        all.samples.iter().map(|batch| transform.samples(batch, &transform.ids(false).unwrap()).unwrap());
    let changed = StackTables {
        samples: samples.collect(),
        stacks: transform.stacks(false).unwrap(),
        frames: transform.frames(false).unwrap(),
        functions: transform.functions().unwrap(),
        ..all
    };
    let tree = call_tree(&changed, &CallTreeOptions::default()).unwrap();
    let mut paths: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for node in tree.nodes() {
        let above = paths.get(node.parent as usize).map_or(String::new(), |path| format!("{path};"));
        paths.push(above + tree.symbols().name(node.symbol));
        if node.self_weight > 0 {
            found.push((paths.last().unwrap().clone(), node.self_weight));
        }
    }
    found.sort();
    found
}

/// Marks of the symbols with a name.
fn named(transform: &StackTransform, name: &str) -> Vec<bool> {
    (0..transform.symbols().all().len() as u32)
        .map(|symbol| transform.symbols().name(symbol) == name)
        .collect()
}

fn stacks(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    let mut rows: Vec<_> = rows.iter().map(|&(path, weight)| (path.to_owned(), weight)).collect();
    rows.sort();
    rows
}

#[test]
fn steps_change_stacks() {
    let step = |step: StackStep, name: &'static str| {
        transformed(move |all| {
            let marked = named(all, name);
            assert!(all.apply(step, &marked) > 0);
        })
    };
    let none = ("[no stack]", 10_000);
    let unnamed = "main;[unknown] app;add";
    assert_eq!(step(StackStep::Only, "fib"), stacks(&[("main;fib;fib", 10), ("main;fib;fib;sys_read", 100)]));
    assert_eq!(step(StackStep::Drop, "fib"), stacks(&[("main", 1), (unnamed, 1000), none]));
    let hidden = [("main", 11), ("main;sys_read", 100), (unnamed, 1000), none];
    assert_eq!(step(StackStep::Hide, "fib"), stacks(&hidden));
    let rest = [("fib;fib", 10), ("fib;fib;sys_read", 100), ("[unknown] app;add", 1000), none];
    assert_eq!(step(StackStep::Hide, "main"), stacks(&rest));
    assert_eq!(step(StackStep::Root, "fib"), stacks(&[("fib;fib", 10), ("fib;fib;sys_read", 100)]));
    assert_eq!(
        step(StackStep::Leaf, "fib"),
        stacks(&[("main", 1), ("main;fib", 110), (unnamed, 1000), none])
    );
    assert_eq!(step(StackStep::Innermost, "sys_read"), stacks(&[("main;fib;fib;sys_read", 100)]));
    let once = [("main", 1), ("main;fib", 10), ("main;fib;sys_read", 100), (unnamed, 1000), none];
    assert_eq!(transformed(|all| assert_eq!(all.collapse_recursion(), 2)), stacks(&once));
}

#[test]
fn consecutive_frames_of_a_group_are_one() {
    let found = transformed(|all| {
        let groups: Vec<u32> = (0..all.symbols().all().len() as u32)
            .map(|symbol| if ["main", "fib"].contains(&all.symbols().name(symbol)) { 0 } else { NONE })
            .collect();
        assert_eq!(all.collapse(&groups, &["app".to_owned()]), 4);
        let marked = named(all, "app");
        assert_eq!(all.apply(StackStep::Drop, &named(all, "sys_read")), 1);
        assert_eq!(all.apply(StackStep::Only, &marked), 3);
    });
    assert_eq!(found, stacks(&[("app", 11), ("app;[unknown] app;add", 1000)]));
}

#[test]
fn a_stack_selects_those_that_begin_with_it() {
    let below = stacks(&[("main;fib;fib", 10), ("main;fib;fib;sys_read", 100)]);
    assert_eq!(transformed(|all| assert_eq!(all.apply_to_stack(true, 1), 2)), below);
    // Keys are those of the original stacks after other steps, too.
    let found = transformed(|all| {
        let marked = named(all, "main");
        all.apply(StackStep::Hide, &marked);
        assert_eq!(all.apply_to_stack(true, 1), 2);
    });
    assert_eq!(found, stacks(&[("fib;fib", 10), ("fib;fib;sys_read", 100)]));
    assert_eq!(transformed(|all| assert_eq!(all.apply_to_stack(true, 77), 0)), stacks(&[]));
}

#[test]
fn calls_of_functions_that_are_taken_out_are_nobodys() {
    let all = tables(&[(None, 0), (Some(0), 1), (Some(1), 2), (Some(2), 3)], &[]);
    let mut rows = t::samples::Builder::new();
    for (event, unit) in [("wall-time", "ns"), ("calls", "calls")] {
        for (stack, weight) in [(0, 1), (1, 10), (2, 100), (3, 1000)] {
            rows.push(rows.len() as u64, 0, 0, None, Some(stack), weight, unit, event, 0, 0);
        }
    }
    let all = StackTables { samples: vec![rows.finish()], ..all };
    let sums = |step: StackStep, name: &str| {
        let mut transform = StackTransform::new(all.clone()).unwrap();
        transform.apply(step, &named(&transform, name));
        let left = transform.samples(&all.samples[0], &transform.ids(false).unwrap()).unwrap();
        let events = sampled_events(&[left]).unwrap();
        events.iter().map(|event| event.weight).collect::<Vec<_>>()
    };
    // The time of what is taken out is in the callers, its calls are not.
    assert_eq!(sums(StackStep::Hide, "fib"), [1111, 1001]);
    assert_eq!(sums(StackStep::Hide, "sys_read"), [1111, 111]);
    assert_eq!(sums(StackStep::Leaf, "fib"), [1111, 11]);
    assert_eq!(sums(StackStep::Only, "fib"), [1110, 1110]);
}

/// A function of JIT code without a declaration, a frame of it per line, and what [`frame_names`] returns of each.
fn names_of_lines(function: &str, paths: &[Option<&str>]) -> Vec<(String, bool)> {
    let mut functions = t::functions::Builder::new();
    functions.push(0, None, function, function, None, None, None, None);
    let mut frames = t::frames::Builder::new();
    for (number, &path) in paths.iter().enumerate() {
        frames.push(
            number as u32,
            Some(0),
            None,
            None,
            Some(64),
            None,
            path,
            path.map(|_| 5),
            None,
            0,
            "jit",
            "sampled",
            None,
        );
    }
    let tables =
        StackTables { functions: vec![functions.finish()], frames: vec![frames.finish()], ..small() };
    rows_of(&frame_names(&tables).unwrap())
}

fn rows_of(names: &RecordBatch) -> Vec<(String, bool)> {
    let of_frames = names["name"].as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
    let own = names["has_own_path"].as_boolean();
    (0..names.num_rows()).map(|row| (of_frames.value(row).to_owned(), own.value(row))).collect()
}

#[test]
fn frames_have_the_names_of_their_symbols() {
    let names: Vec<_> = rows_of(&frame_names(&small()).unwrap()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["main", "fib", "fib", "sys_read", "[unknown] app", "add"]);
}

#[test]
fn files_of_other_java_classes_are_of_inlined_methods() {
    let own =
        |function: &str, path: &str| names_of_lines(function, &[Some(path)]) == [(function.to_owned(), true)];
    assert!(own("shop.Orders.total(int)", "Orders.java"));
    assert!(own("shop.Orders$Line.price()", "/src/shop/Orders.java"));
    assert!(own("Orders.total(int)", "/src/Orders.java"));
    assert!(own("total", "/src/Prices.java"));
    assert!(own("~total app.js", "app.js"));
    assert!(!own("shop.Orders.total(int)", "Prices.java"));
    assert!(!own("shop.Orders.total(int)", "/src/billing/Orders.java"));
    let of_lines = names_of_lines("Orders.total()", &[Some("Prices.java"), None, Some("Orders.java")]);
    assert_eq!(of_lines.iter().map(|&(_, own)| own).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn tiers_of_every_runtime_are_of_an_origin() {
    let origin = |code_kind: &str, tier: &str| CodeOrigin::of("jit", code_kind, Some(tier), false, true);
    for (name, expected) in [
        ("OptimizedTier1", CodeOrigin::Optimised),
        ("Tier0", CodeOrigin::Baseline),
        ("FTL", CodeOrigin::Optimised),
        ("LLInt", CodeOrigin::Interpreter),
        ("Ion", CodeOrigin::Optimised),
        ("maglev", CodeOrigin::MidTier),
        ("PreJIT", CodeOrigin::AheadOfTime),
        ("ReadyToRun", CodeOrigin::AheadOfTime),
        ("of a runtime to come", CodeOrigin::Jit),
    ] {
        assert_eq!(origin("jit", name), expected, "{name}");
    }
    assert_eq!(origin("stub", "ignition handler"), CodeOrigin::Interpreter);
    assert_eq!(origin("stub", "Thunk"), CodeOrigin::Stub);
    let mut all: Vec<_> = CodeOrigin::ALL.iter().flat_map(|origin| origin.tiers_and_kinds()).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|two| two[0] != two[1]), "each is of one origin: {all:?}");
}
