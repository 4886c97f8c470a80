"""Samples and their stacks, as the core writes them for viewers: queries, so that names are those of all exports."""

from perfuse.exporters.frames import FRAMES
from perfuse.exporters.source import SUMMED

FRAME_ROWS = f"""
    SELECT frame_id::UINTEGER AS frame_id, label AS name, coalesce(linkage_name, label) AS system_name,
        coalesce(path, function_path) AS path, function_line::UINTEGER AS start_line, line::UINTEGER AS line,
        coalesce(mapping, module) AS binary, coalesce(mapping_build_id, module_build_id) AS build_id,
        kind, address::UBIGINT AS address, relative_address::UBIGINT AS relative_address,
        inline_depth::UINTEGER AS inline_depth
    FROM ({FRAMES}) ORDER BY frame_id
"""
"""A row a frame."""

STACK_ROWS = """
    SELECT stack_id::UINTEGER AS stack_id, parent_stack_id::UINTEGER AS parent_stack_id, frame_id::UINTEGER AS frame_id
    FROM stacks ORDER BY stack_id
"""
"""A row a stack; a parent is before its children."""

IS_SUM = f"event::VARCHAR IN ({SUMMED})"
"""Whether a sample is of calls or allocations: it stands for many, and is of no moment."""
