"""xlalite as a backend of torch.compile: `torch.compile(model, backend="xlalite")`.

torch finds it by the entry point `torch_dynamo_backends`. AOTAutograd hands over functional graphs of core ATen
operations, forward and backward; a table of rules turns them into HLO, and what has no rule runs as it would have.
"""

from xlalite.interop.torch.backend import backend as backend
from xlalite.interop.torch.explaining import explain as explain
