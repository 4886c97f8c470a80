use std::collections::HashMap;

use arrow_array::RecordBatch;
use perfuse_tables::{code_objects, functions, inline_calls, line_rows};

use super::*;
use crate::elf_image::Error;
use crate::elf_image::tables::{ImageTables, PlacedCode, write};

type Whole = ImageTables<Vec<RecordBatch>, Vec<RecordBatch>, Vec<RecordBatch>>;

/// The tables of some code, each code object with its process.
#[derive(Default)]
struct Built {
    functions: functions::Builder,
    code_objects: code_objects::Builder,
    line_rows: line_rows::Builder,
    inline_calls: inline_calls::Builder,
    function_ids: HashMap<(String, Option<u32>), u32>,
}

impl Built {
    fn function(
        &mut self,
        names: (&str, &str),
        path: Option<&str>,
        line: Option<u32>,
        column: Option<u32>,
    ) -> u32 {
        let next = self.function_ids.len() as u32;
        let (name, linkage_name) = names;
        let id = *self.function_ids.entry((linkage_name.into(), line)).or_insert(next);
        if id == next {
            self.functions.push(id, None, name, linkage_name, None, path, line, column);
        }
        id
    }

    fn add(&mut self, code: &CodeObject<'_>, process_id: u32) {
        let function_id = self.function((code.name, code.linkage_name), code.path, code.line, code.column);
        self.code_objects.push(
            code.id,
            function_id,
            process_id,
            None,
            "jit",
            None,
            0,
            None,
            code.start_address,
            code.size,
            code.code,
            0,
            0,
            0,
        );
        for line in code.lines {
            self.line_rows.push(code.id, line.offset, line.path, line.line, line.column, None, 0, 0);
        }
        for call in code.inlines {
            let function_id = self.function((call.name, call.name), call.path, call.line, None);
            let (path, line, column) = (call.call_path, call.call_line, call.call_column);
            let InlinedRange { start, size, depth, .. } = *call;
            self.inline_calls.push(code.id, start, size, depth, function_id, path, line, column, 0, 0);
        }
    }

    fn tables(mut self) -> Whole {
        ImageTables {
            functions: vec![self.functions.finish()],
            code_objects: vec![self.code_objects.finish()],
            line_rows: vec![self.line_rows.finish()],
            inline_calls: vec![self.inline_calls.finish()],
        }
    }
}

/// Batches of a few rows, the first one empty.
fn cut(batches: &[RecordBatch], len: usize) -> Vec<RecordBatch> {
    let batch = &batches[0];
    let starts = (0..batch.num_rows()).step_by(len);
    let pieces = starts.map(|start| batch.slice(start, len.min(batch.num_rows() - start)));
    std::iter::once(batch.slice(0, 0)).chain(pieces).collect()
}

#[test]
fn images_do_not_depend_on_batch_boundaries() {
    let process_of = |code: &CodeObject<'_>| if code.id == 8 || code.id == 11 { 4 } else { 2 };
    let expected: Vec<_> = [2, 4]
        .map(|process_id| {
            let codes: Vec<_> = sample().into_iter().filter(|code| process_of(code) == process_id).collect();
            let (bytes, placed, summary) = image(x86_64(), &codes);
            (bytes, codes.iter().map(|code| code.id).zip(placed).collect::<HashMap<_, _>>(), summary)
        })
        .into();
    for len in [1, 2, 3, 100] {
        let mut built = Built::default();
        sample().iter().for_each(|code| built.add(code, process_of(code)));
        let tables = built.tables();
        let tables = ImageTables {
            functions: cut(&tables.functions, len),
            code_objects: cut(&tables.code_objects, len),
            line_rows: cut(&tables.line_rows, len),
            inline_calls: cut(&tables.inline_calls, len),
        };
        let mut files = [Cursor::new(Vec::new()), Cursor::new(Vec::new())];
        let mut given: HashMap<u32, _> = [2, 4].into_iter().zip(&mut files).collect();
        let images =
            write(tables, |process_id| Ok(Some((given.remove(&process_id).unwrap(), x86_64())))).unwrap();
        let code_object_ids: Vec<_> = images.code.iter().map(|code| code.code_object_id).collect();
        assert_eq!(code_object_ids, [7, 8, 9, 10, 11]);
        assert_eq!(images.images.len(), 2);
        for (((process_id, summary), file), (bytes, placed, expected)) in
            images.images.iter().zip(&files).zip(&expected)
        {
            assert_eq!(summary.build_id, expected.build_id, "process {process_id}, batches of {len}");
            assert!(file.get_ref() == bytes, "process {process_id}, batches of {len}");
            let code = images.code.iter().filter(|code| code.process_id == *process_id);
            for &PlacedCode { code_object_id, file_offset, size, .. } in code {
                assert_eq!(placed[&code_object_id], CodePlacement { file_offset, size });
            }
        }
    }
}

#[test]
fn lines_of_code_that_does_not_come_are_passed_over() {
    let mut built = Built::default();
    sample().iter().for_each(|code| built.add(code, 0));
    let mut tables = built.tables();
    // Only the last code object that has lines.
    tables.code_objects = vec![tables.code_objects[0].slice(3, 1)];
    let mut file = Cursor::new(Vec::new());
    let mut given = Some(&mut file);
    let images = write(tables, |_| Ok(Some((given.take().unwrap(), x86_64())))).unwrap();
    assert_eq!(images.images[0].1.num_line_rows, 8);
    assert_eq!(images.images[0].1.num_inlined_calls, 3);
}

#[test]
fn a_process_that_is_not_wanted_is_passed_over() {
    let mut built = Built::default();
    sample().iter().for_each(|code| built.add(code, u32::from(code.id == 8)));
    let mut file = Cursor::new(Vec::new());
    let mut wanted = Some(&mut file);
    let images =
        write(built.tables(), |id| Ok((id == 0).then(|| (wanted.take().unwrap(), x86_64())))).unwrap();
    let others: Vec<_> = sample().into_iter().filter(|code| code.id != 8).collect();
    let (bytes, ..) = image(x86_64(), &others);
    assert_eq!(images.images.len(), 1);
    assert_eq!(images.code.iter().map(|code| code.code_object_id).collect::<Vec<_>>(), [7, 9, 10, 11]);
    assert!(file.get_ref() == &bytes);
}

#[test]
fn tables_out_of_order_are_refused() {
    let error = |change: fn(&mut Whole)| {
        let mut built = Built::default();
        sample().iter().for_each(|code| built.add(code, 0));
        let mut tables = built.tables();
        change(&mut tables);
        let created = write(tables, |_| Ok(Some((Cursor::new(Vec::new()), x86_64()))));
        created.unwrap_err()
    };
    fn twice(batches: &mut Vec<RecordBatch>) {
        batches.push(batches[0].clone());
    }
    assert!(matches!(error(|tables| twice(&mut tables.code_objects)), Error::Unsorted("code_objects")));
    assert!(matches!(error(|tables| twice(&mut tables.line_rows)), Error::Unsorted("line_rows")));
    assert!(matches!(error(|tables| twice(&mut tables.inline_calls)), Error::Unsorted("inline_calls")));
    assert!(matches!(error(|tables| tables.functions.clear()), Error::UnknownFunction(_)));
    assert!(matches!(error(|tables| tables.code_objects = tables.line_rows.clone()), Error::Column(_)));
}

#[test]
fn profiles_without_code_have_no_images() {
    let tables = Built::default().tables();
    let images =
        write(tables, |_| -> Result<Option<(Cursor<Vec<u8>>, _)>, _> { unreachable!("there is no process") });
    let images = images.unwrap();
    assert!(images.images.is_empty() && images.code.is_empty());
}
