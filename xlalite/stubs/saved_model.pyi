# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.saved_models import (
    SavedModelBuilder as _SavedModelBuilder, build_signature_def as build_signature_def,
    build_tensor_info as build_tensor_info, classification_signature_def as classification_signature_def,
    get_tensor_from_tensor_info as get_tensor_from_tensor_info, load as load,
    main_op_with_restore as main_op_with_restore, maybe_saved_model_directory as maybe_saved_model_directory,
    predict_signature_def as predict_signature_def, regression_signature_def as regression_signature_def,
    simple_save as simple_save
)
from xlalite.stubs import (
    saved_model_builder as _saved_model_builder, saved_model_constants as _saved_model_constants,
    saved_model_loader as _saved_model_loader, saved_model_main_op as _saved_model_main_op,
    saved_model_signature_constants as _saved_model_signature_constants,
    saved_model_signature_def_utils as _saved_model_signature_def_utils,
    saved_model_tag_constants as _saved_model_tag_constants, saved_model_utils as _saved_model_utils
)

Builder = _SavedModelBuilder
contains_saved_model = maybe_saved_model_directory
builder = _saved_model_builder
constants = _saved_model_constants
loader = _saved_model_loader
main_op = _saved_model_main_op
signature_constants = _saved_model_signature_constants
signature_def_utils = _saved_model_signature_def_utils
tag_constants = _saved_model_tag_constants
utils = _saved_model_utils
