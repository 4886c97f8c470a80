"""Heap graphs of Perfetto traces.

The classes of the package `perfetto` leave them out, so their messages are described here as in Perfetto's
`protos/perfetto/trace/profiling/heap_graph.proto`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from needs import need_module

_REPEATED, _OPTIONAL = 3, 1
_MESSAGE, _STRING, _BYTES, _UINT64, _INT32, _BOOL = 11, 9, 12, 4, 5, 8
_FIELDS = {
    "Trace": [("packet", 1, _MESSAGE, "Packet")],
    "Packet": [("timestamp", 8, _UINT64, ""), ("sequence", 10, _UINT64, ""), ("heap_graph", 56, _MESSAGE, "HeapGraph")],
    "HeapGraph": [
        ("pid", 1, _INT32, ""),
        ("objects", 2, _MESSAGE, "HeapGraphObject"),
        ("field_names", 4, _MESSAGE, "InternedString"),
        ("continued", 5, _BOOL, ""),
        ("index", 6, _UINT64, ""),
        ("roots", 7, _MESSAGE, "HeapGraphRoot"),
        ("types", 9, _MESSAGE, "HeapGraphType"),
    ],
    "HeapGraphObject": [
        ("id", 1, _UINT64, ""),
        ("type_id", 2, _UINT64, ""),
        ("self_size", 3, _UINT64, ""),
        ("reference_field_ids", 4, _UINT64, ""),
        ("reference_object_ids", 5, _UINT64, ""),
        ("id_delta", 7, _UINT64, ""),
    ],
    "HeapGraphRoot": [("object_ids", 1, _UINT64, ""), ("root_type", 2, _UINT64, "")],
    "HeapGraphType": [("id", 1, _UINT64, ""), ("class_name", 3, _STRING, "")],
    "InternedString": [("iid", 1, _UINT64, ""), ("str", 2, _BYTES, "")],
}


class HeapGraph(NamedTuple):
    """A heap graph: type and size by address, references as owner, name and target, and the objects of roots."""

    objects: dict[int, tuple[str, int]]
    references: list[tuple[int, str, int]]
    roots: list[int]

    @property
    def size_bytes(self) -> int:
        """Sum of the sizes."""
        return sum(size for _, size in self.objects.values())


def heap_graphs(data: bytes) -> list[HeapGraph]:
    """The heap graphs of a trace, in its order, as Perfetto's trace processor joins their packets."""
    return [_joined(packets) for packets in _sequences(data)]


def raw_packets(data: bytes) -> list[list[int]]:
    """The numbers of the fields of each packet, in the order of the file."""
    return [[number for number, _ in _fields(packet)] for number, packet in _fields(data) if number == 1]


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Fields of a message: numbers, and the bytes of those that have a length."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7, 0) if key & 7 else 0
        if key & 7 == 0:
            varint()
        elif key & 7 == 2:
            size = varint()
        yield key >> 3, data[at : at + size]
        at += size


def _joined(packets: list[Any]) -> HeapGraph:
    assert [packet.index for packet in packets] == list(range(len(packets)))
    assert [packet.continued for packet in packets] == [True] * (len(packets) - 1) + [False]
    types = {of.id: of.class_name for packet in packets for of in packet.types}
    names = {one.iid: one.str.decode() for packet in packets for one in packet.field_names}
    graph = HeapGraph({}, [], [address for packet in packets for root in packet.roots for address in root.object_ids])
    address = 0
    for one in (one for packet in packets for one in packet.objects):
        address = one.id or address + one.id_delta
        assert address not in graph.objects
        graph.objects[address] = types[one.type_id], one.self_size
        fields = [names[field] for field in one.reference_field_ids]
        graph.references.extend(
            (address, field, target) for field, target in zip(fields, one.reference_object_ids, strict=True)
        )
    return graph


def _sequences(data: bytes) -> Iterator[list[Any]]:
    """The heap graphs of each packet sequence."""
    found: dict[int, list[Any]] = {}
    for packet in _trace(data).packet:
        if packet.HasField("heap_graph"):
            found.setdefault(packet.sequence, []).append(packet.heap_graph)
    yield from found.values()


def _trace(data: bytes) -> Any:
    descriptors = need_module("google.protobuf.descriptor_pb2")
    pool = need_module("google.protobuf.descriptor_pool").DescriptorPool()
    file = descriptors.FileDescriptorProto(name="heap_graph.proto", package="described", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            is_list = field.endswith("s") and field not in ("class_name",)
            one = message.field.add(name=field, number=number, type=kind, label=_REPEATED if is_list else _OPTIONAL)
            if field == "packet":
                one.label = _REPEATED
            if kind == _MESSAGE:
                one.type_name = f".described.{of}"
            elif is_list:
                one.options.packed = True
    pool.Add(file)
    factory = need_module("google.protobuf.message_factory")
    trace = factory.GetMessageClass(pool.FindMessageTypeByName("described.Trace"))()
    trace.ParseFromString(data)
    return trace
