//! Table `instants`: custom and typed events.

use perfuse_tables::instants;

use super::super::log::{Content, XRay};
use super::super::records::{Dialect, Event, Record};
use super::super::survey::owner;
use super::super::walk::{Step, Walk};
use perfuse_recording::{BatchStream, Placement, Recording, Scale};

/// The rows of a log, a batch for every block that has some.
pub fn stream(log: &XRay, placement: &Placement) -> BatchStream {
    let (log, placement) = (log.clone(), placement.clone());
    let order = match log.content() {
        Content::Fdr(survey) => survey.order.clone(),
        Content::Basic(_) | Content::Profile(_) => Vec::new(),
    };
    let scale = super::scale(&log, &placement);
    Box::new(order.into_iter().filter_map(move |index| block(&log, &placement, scale, index)))
}

fn block(log: &XRay, placement: &Placement, scale: Scale, index: usize) -> Option<arrow_array::RecordBatch> {
    let Content::Fdr(survey) = log.content() else { return None };
    let block = survey.blocks.get(index)?;
    if !block.has_events() {
        return None;
    }
    let thread_id = super::thread(placement, owner(block));
    let dialect = Dialect { payloads: block.payloads, ..log.header().dialect() };
    let &(start, clock) = block.units.first()?;
    let mut clock = survey.clock(index, clock);
    let mut walk = Walk::new(log.source(), start..block.records.end, dialect);
    let mut table = instants::Builder::new();
    loop {
        walk.functions(usize::MAX).for_each(|_, _, delta| clock.step(delta));
        let Some(step) = walk.next() else { break };
        let Step::Metadata { offset, record, .. } = step else { continue };
        let (Some(tsc), Record::Custom(event) | Record::Typed(event)) = (clock.metadata(&record), record)
        else {
            continue;
        };
        let Event { cpu, event_type, payload, size, .. } = event;
        let kind = if event_type.is_some() { "typed_event" } else { "custom_event" };
        let name = std::str::from_utf8(payload).ok().filter(|text| !text.chars().any(char::is_control));
        // Where the writer overwrote the bytes there are none, unless there were none to write.
        let payload = (block.payloads || size == 0).then_some(payload);
        table.push(
            scale.ns(tsc),
            thread_id,
            cpu.or(clock.cpu).map(u32::from),
            kind,
            name.filter(|text| !text.is_empty()),
            event_type.map(u32::from),
            None,
            payload,
            placement.source_id,
            offset as u64,
        );
    }
    log.source().release(block.records.clone());
    Some(table.finish())
}
