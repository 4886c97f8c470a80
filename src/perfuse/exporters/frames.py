"""How every target names a frame: one query, so that two exports of a profile never disagree."""

LABEL = """
    coalesce(
        nullif(fn.name::VARCHAR, ''),
        CASE f.kind::VARCHAR
            WHEN 'kernel' THEN '[unknown] kernel'
            WHEN 'hypervisor' THEN '[unknown] hypervisor'
            WHEN 'jit' THEN '[unknown] jit'
            ELSE coalesce('[unknown] ' || regexp_extract(mp.path::VARCHAR, '[^/]*$'), '[unknown]')
        END
    )
"""
"""Name of frame `f` with function `fn` and mapping `mp`: unnamed addresses of one module share a label."""

FRAMES = f"""
    SELECT
        f.frame_id, f.function_id, f.code_object_id, f.mapping_id,
        f.address, f.relative_address, f.path::VARCHAR AS path, f.line, f.column, f.inline_depth,
        f.kind::VARCHAR AS kind, f.unwound_by::VARCHAR AS unwound_by,
        {LABEL} AS label,
        fn.native_id, fn.linkage_name::VARCHAR AS linkage_name,
        fn.path::VARCHAR AS function_path, fn.line AS function_line, fn.column AS function_column,
        m.name::VARCHAR AS module, m.build_id::VARCHAR AS module_build_id,
        mp.path::VARCHAR AS mapping, mp.build_id::VARCHAR AS mapping_build_id,
        c.process_id AS code_process_id, c.kind::VARCHAR AS code_kind, c.tier::VARCHAR AS tier, c.size_bytes,
        s.producer::VARCHAR AS producer
    FROM frames f
    LEFT JOIN functions fn USING (function_id)
    LEFT JOIN modules m USING (module_id)
    LEFT JOIN mappings mp ON mp.mapping_id = f.mapping_id
    LEFT JOIN code_objects c ON c.code_object_id = f.code_object_id
    LEFT JOIN sources s ON s.source_id = c.source_id
"""
"""Each frame with what is known of its function, its module and its code."""
