// The binary container of answers: a JSON text and typed columns, read in place. Layout: JSLB version 1.

const MAGIC = [0xdc, 0xdf, 0x4a, 0x53, 0x4c, 0x42, 1, 0];
const TABLE = 20;
const ENTRY = 12;
const JSON_SLAB = 10;
const COLUMNS = [Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array];

/**
 * Reads a container. The root's `columns` name slabs by number; in the result they are typed arrays.
 *
 * @returns the root with `columns` replaced
 */
export function readContainer(buffer) {
  const head = new Uint8Array(buffer, 0, MAGIC.length);
  if (!MAGIC.every((byte, at) => head[at] === byte)) throw new Error("not a container: the first bytes differ");
  const view = new DataView(buffer);
  const numSlabs = view.getUint32(12, true);
  const slab = (nth) => {
    if (nth >= numSlabs) throw new Error(`a container of ${numSlabs} slabs has no slab ${nth}`);
    const at = TABLE + ENTRY * nth;
    const [type, offset, length] = [0, 4, 8].map((field) => view.getUint32(at + field, true));
    if (type === JSON_SLAB) return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, offset, length)));
    const Column = COLUMNS[type];
    return new Column(buffer, offset, length / Column.BYTES_PER_ELEMENT);
  };
  const root = slab(view.getUint32(16, true));
  const columns = {};
  for (const [name, nth] of Object.entries(root.columns ?? {})) columns[name] = slab(nth);
  return { ...root, columns };
}
