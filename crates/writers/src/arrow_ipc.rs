//! Arrow IPC: record batches as a file with a footer (also known as Feather version 2), or as a stream.

use std::io::Write;

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;

/// The two forms of Arrow IPC.
#[derive(Clone, Copy)]
pub enum Form {
    /// With a footer that lists the batches: readers that seek need it.
    File,
    /// Batches one after the other, for pipes.
    Stream,
}

/// Writes all batches; only one of them is in memory.
pub fn write(out: impl Write, batches: impl RecordBatchReader, form: Form) -> Result<(), ArrowError> {
    let schema = batches.schema();
    match form {
        Form::File => {
            let mut writer = FileWriter::try_new_buffered(out, &schema)?;
            for batch in batches {
                writer.write(&batch?)?;
            }
            writer.finish()
        }
        Form::Stream => {
            let mut writer = StreamWriter::try_new_buffered(out, &schema)?;
            for batch in batches {
                writer.write(&batch?)?;
            }
            writer.finish()
        }
    }
}
