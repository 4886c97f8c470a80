//! Processes as viewers show them.

use perfuse_tables::processes;

use super::*;

/// Pid and name of each process as it is shown.
fn shown(rows: &[(i32, Option<&str>)]) -> Vec<(i32, Option<String>)> {
    let mut table = processes::Builder::new();
    for (number, &(pid, name)) in rows.iter().enumerate() {
        table.push(number as u32, pid, name, None, None);
    }
    let processes = shown_processes(&[table.finish()]).unwrap();
    processes.into_iter().map(|process| (process.pid, process.name)).collect()
}

#[test]
fn processes_with_one_pid_get_free_ones() {
    let rows = [(7, Some("a")), (7, Some("b")), (9, None), (7, None)];
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(shown(&rows), [(7, named("a")), (10, named("b 7")), (9, None), (11, named("process 7"))]);
}

#[test]
fn above_the_greatest_pid_none_is_free() {
    let rows = [(i32::MAX, None), (1, None), (i32::MAX, None), (i32::MAX, None)];
    assert_eq!(shown(&rows).into_iter().map(|(pid, _)| pid).collect::<Vec<_>>(), [i32::MAX, 1, 2, 3]);
}
