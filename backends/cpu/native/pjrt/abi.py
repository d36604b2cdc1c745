"""The PJRT C API as data: the order of its functions, the fields of their arguments, its numbers for types and errors.

A function is `PJRT_Error *f(Arguments *)`; arguments begin with `size_t struct_size; void *extension_start`. Structures
and the table of functions only ever grow at their ends, and a client looks at the minor version before it calls what
is newer, so a table of one version serves all later clients of the same major version.

Source: `pjrt_c_api.h` of OpenXLA, version 0.81.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

MAJOR, MINOR = 0, 81

_TEXT = "p:text q:text_size"
_LIST = "p:items q:num_items"
_BYTES = "p:bytes q:size p:owner p:deleter"
_ATTRIBUTES = "p:attributes q:num_attributes"
_STATISTICS = "peak allocations largest limit reserved peak_reserved reservable free_block pool peak_pool"

# In the order of the table. `p` is a pointer, `q` 64 bits, `i` an int, `b` a bool; "-" marks what is not offered.
_FUNCTIONS = f"""
Error_Destroy p:error | Error_Message p:error p:message q:message_size | Error_GetCode p:error i:code
Plugin_Initialize | Plugin_Attributes {_ATTRIBUTES}
Event_Destroy p:event | Event_IsReady p:event b:is_ready | Event_Error p:event | Event_Await p:event
Event_OnReady p:event p:callback p:user_arg
Client_Create p:options q:num_options p:get p:get_arg p:put p:put_arg p:client p:try_get p:try_get_arg
Client_Destroy p:client | Client_PlatformName p:client {_TEXT} | Client_ProcessIndex p:client i:process_index
Client_PlatformVersion p:client {_TEXT} | Client_Devices p:client {_LIST} | Client_AddressableDevices p:client {_LIST}
Client_LookupDevice p:client i:id p:device | Client_LookupAddressableDevice p:client i:id p:device
Client_AddressableMemories p:client {_LIST} | Client_Compile p:client p:program p:options q:options_size p:executable
Client_DefaultDeviceAssignment p:client i:num_replicas i:num_partitions q:size p:assignment
Client_BufferFromHostBuffer p:client p:data i:type p:dims q:rank p:strides q:num_strides i:semantics p:device p:memory
  p:layout p:done_with_host_buffer p:buffer
DeviceDescription_Id p:description i:id | DeviceDescription_ProcessIndex p:description i:process_index
DeviceDescription_Attributes p:description q:num_attributes p:attributes
DeviceDescription_Kind p:description {_TEXT} | DeviceDescription_DebugString p:description {_TEXT}
DeviceDescription_ToString p:description {_TEXT}
Device_GetDescription p:device p:description | Device_IsAddressable p:device b:is_addressable
Device_LocalHardwareId p:device i:id | Device_AddressableMemories p:device {_LIST}
Device_DefaultMemory p:device p:memory
Device_MemoryStats p:device q:in_use {" ".join(f"q:{name} b:{name}_is_set" for name in _STATISTICS.split())}
Memory_Id p:memory i:id | Memory_Kind p:memory {_TEXT} | Memory_DebugString p:memory {_TEXT}
Memory_ToString p:memory {_TEXT} | Memory_AddressableByDevices p:memory {_LIST}
Executable_Destroy p:executable | Executable_Name p:executable {_TEXT} | Executable_NumReplicas p:executable q:number
Executable_NumPartitions p:executable q:number | Executable_NumOutputs p:executable q:number
Executable_SizeOfGeneratedCodeInBytes p:executable q:number
Executable_GetCostAnalysis p:executable q:num_attributes p:attributes
Executable_OutputMemoryKinds p:executable q:num_outputs p:kinds p:kind_sizes
Executable_OptimizedProgram p:executable p:program | Executable_Serialize p:executable {_BYTES}
LoadedExecutable_Destroy p:executable | LoadedExecutable_GetExecutable p:loaded p:executable
LoadedExecutable_AddressableDevices p:executable {_LIST} | LoadedExecutable_Delete p:executable
LoadedExecutable_IsDeleted p:executable b:is_deleted
LoadedExecutable_Execute p:executable p:options p:argument_lists q:num_devices q:num_arguments p:output_lists
  p:complete_events p:execute_device
Executable_DeserializeAndLoad p:client p:bytes q:size p:executable p:options q:options_size
LoadedExecutable_Fingerprint p:executable {_TEXT}
Buffer_Destroy p:buffer | Buffer_ElementType p:buffer i:type | Buffer_Dimensions p:buffer p:dims q:rank
Buffer_UnpaddedDimensions p:buffer p:dims q:rank | Buffer_DynamicDimensionIndices p:buffer p:indices q:count
Buffer_GetMemoryLayout - | Buffer_OnDeviceSizeInBytes p:buffer q:size | Buffer_Device p:buffer p:device
Buffer_Memory p:buffer p:memory | Buffer_Delete p:buffer | Buffer_IsDeleted p:buffer b:is_deleted
Buffer_CopyToDevice p:buffer p:device p:result | Buffer_ToHostBuffer p:buffer p:layout p:target q:size p:event
Buffer_IsOnCpu p:buffer b:is_on_cpu | Buffer_ReadyEvent p:buffer p:event | Buffer_UnsafePointer p:buffer p:pointer
Buffer_IncreaseExternalReferenceCount p:buffer | Buffer_DecreaseExternalReferenceCount p:buffer
Buffer_OpaqueDeviceMemoryDataPointer p:buffer p:pointer
CopyToDeviceStream_Destroy - | CopyToDeviceStream_AddChunk - | CopyToDeviceStream_TotalBytes -
CopyToDeviceStream_GranuleSize - | CopyToDeviceStream_CurrentBytes -
TopologyDescription_Create - | TopologyDescription_Destroy p:topology
TopologyDescription_PlatformName p:topology {_TEXT} | TopologyDescription_PlatformVersion p:topology {_TEXT}
TopologyDescription_GetDeviceDescriptions p:topology {_LIST} | TopologyDescription_Serialize p:topology {_BYTES}
TopologyDescription_Attributes p:topology {_ATTRIBUTES} | Compile -
Executable_OutputElementTypes p:executable p:types q:num_types
Executable_OutputDimensions p:executable q:num_outputs p:dims p:ranks
Buffer_CopyToMemory p:buffer p:memory p:result
Client_CreateViewOfDeviceBuffer p:client p:data p:dims q:rank i:type p:layout p:device p:on_delete p:on_delete_arg
  p:stream p:buffer p:memory
Executable_Fingerprint p:executable {_TEXT} | Client_TopologyDescription p:client p:topology
Executable_GetCompiledMemoryStats p:executable q:code q:argument q:output q:alias q:temp q:host_code q:host_argument
  q:host_output q:host_alias q:host_temp q:peak
Memory_Kind_Id p:memory i:id | ExecuteContext_Create - | ExecuteContext_Destroy -
Buffer_CopyRawToHost p:buffer p:target q:offset q:size p:event
AsyncHostToDeviceTransferManager_Destroy - | AsyncHostToDeviceTransferManager_TransferData -
Client_CreateBuffersForAsyncHostToDevice - | AsyncHostToDeviceTransferManager_RetrieveBuffer -
AsyncHostToDeviceTransferManager_Device - | AsyncHostToDeviceTransferManager_BufferCount -
AsyncHostToDeviceTransferManager_BufferSize - | AsyncHostToDeviceTransferManager_SetBufferError -
AsyncHostToDeviceTransferManager_AddMetadata - | Client_DmaMap - | Client_DmaUnmap -
Client_CreateUninitializedBuffer - | Client_UpdateGlobalProcessInfo - | TopologyDescription_Deserialize -
Client_CreateAliasBuffer - | Client_FulfillAliasBuffer - | LoadedExecutable_GetDeviceAssignment p:executable {_BYTES}
"""
_STRUCTURES = {
    "Program": "p:code q:code_size p:format q:format_size",
    "ExecuteOptions": "p:send p:recv q:num_send q:num_recv i:launch_id p:kept q:num_kept p:context p:call_location "
    "q:num_tasks p:task_ids p:incarnations",
    "NamedValue": "p:name q:name_size i:type q:value q:value_size",
}
_TYPES = {"p": ctypes.c_void_p, "q": ctypes.c_int64, "i": ctypes.c_int32, "b": ctypes.c_int8}
_HEAD: list[tuple[str, Any]] = [("struct_size", ctypes.c_int64), ("extension_start", ctypes.c_void_p)]


def _structure(name: str, fields: list[str]) -> type[ctypes.Structure]:
    layout = [(field[2:], _TYPES[field[0]]) for field in fields]
    return type(name, (ctypes.Structure,), {"_fields_": [*_HEAD, *layout]})


def _entries() -> dict[str, list[str]]:
    lines = _FUNCTIONS.replace("\n  ", " ").replace("\n", "|")
    return {words[0]: words[1:] for words in map(str.split, lines.split("|")) if words}


FUNCTIONS = tuple(_entries())
"""Names of the functions, in the order of the table."""

ARGUMENTS: dict[str, Any] = {
    name: _structure(name, fields)
    for name, fields in {**_entries(), **{name: text.split() for name, text in _STRUCTURES.items()}}.items()
    if fields != ["-"]
}
"""The structures by name: the arguments of functions that are offered, and what they point to."""


class Version(ctypes.Structure):
    """Which version a table has."""

    _fields_ = [*_HEAD, ("major", ctypes.c_int32), ("minor", ctypes.c_int32)]


class Api(ctypes.Structure):
    """The table of functions."""

    _fields_ = [*_HEAD, ("version", Version), *((name, ctypes.c_void_p) for name in FUNCTIONS)]


ELEMENT_TYPES = (
    *("invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16"),
    *("c64", "c128", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s4", "u4", "token"),
    *("s2", "u2", "f8e4m3", "f8e3m4", "f8e8m0fnu", "f4e2m1fn"),
)
"""Types of elements in the order of their numbers, by their names in HLO."""


class ErrorCode(enum.IntEnum):
    """Kinds of errors."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    UNIMPLEMENTED = 12
    INTERNAL = 13


class Semantics(enum.IntEnum):
    """How long a host's memory stays as it is."""

    ONLY_DURING_CALL = 0
    UNTIL_TRANSFER_COMPLETES = 1
    ZERO_COPY = 2
    MUTABLE_ZERO_COPY = 3


class ValueKind(enum.IntEnum):
    """What a named value holds."""

    STRING = 0
    INTEGER = 1
    INTEGERS = 2
    FLOAT = 3
    BOOLEAN = 4
