# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.graph_files import (
    convert_variables_to_constants as convert_variables_to_constants, extract_sub_graph as extract_sub_graph,
    remove_training_nodes as remove_training_nodes
)
from xlalite.ops.functions.graph_import import import_graph_def as import_graph_def

