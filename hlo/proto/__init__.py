"""HLO as protocol buffers: XLA's `HloModuleProto` and `HloProto`, binary and as text, without the protobuf package.

Tables say which fields there are (`data_messages`, `module_messages`, `enum_words`); `wire` and `text_format` read and
write any message they describe; the other files turn messages into the IR and back.
"""
