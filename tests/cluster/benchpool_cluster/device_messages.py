"""The messages between a kubelet and a device plug-in, version ``v1beta1``.

Only the messages of this plug-in are here. The classes are created from a table at run time, so
that no generated code is kept.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "v1beta1"
TEXT = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
FLAG = descriptor_pb2.FieldDescriptorProto.TYPE_BOOL
NESTED = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
MANY = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED

# message -> field -> (number, type); a type in brackets is repeated
MESSAGES: dict[str, dict[str, tuple[int, object]]] = {
    "Empty": {},
    "DevicePluginOptions": {"pre_start_required": (1, FLAG)},
    "RegisterRequest": {
        "version": (1, TEXT),
        "endpoint": (2, TEXT),
        "resource_name": (3, TEXT),
        "options": (4, "DevicePluginOptions"),
    },
    "Device": {"ID": (1, TEXT), "health": (2, TEXT)},
    "ListAndWatchResponse": {"devices": (1, ["Device"])},
    "PreStartContainerRequest": {"devices_ids": (1, [TEXT])},
    "PreStartContainerResponse": {},
    "ContainerAllocateRequest": {"devices_ids": (1, [TEXT])},
    "AllocateRequest": {"container_requests": (1, ["ContainerAllocateRequest"])},
    # a map is sent as a list of pairs
    "Pair": {"key": (1, TEXT), "value": (2, TEXT)},
    "ContainerAllocateResponse": {"envs": (1, ["Pair"])},
    "AllocateResponse": {"container_responses": (1, ["ContainerAllocateResponse"])},
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="benchpool_device_plugin.proto", package=PACKAGE, syntax="proto3"
    )
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = described.field.add(name=name, number=number)
            if isinstance(kind, list):
                field.label, kind = MANY, kind[0]
            if isinstance(kind, str):
                field.type, field.type_name = NESTED, f".{PACKAGE}.{kind}"
            else:
                assert isinstance(kind, int)
                field.type = descriptor_pb2.FieldDescriptorProto.Type.ValueType(kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(found(f"{PACKAGE}.{name}")) for name in MESSAGES}


CLASSES = _classes()
