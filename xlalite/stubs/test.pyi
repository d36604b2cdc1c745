# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.test_case import (
    TestCase as TestCase, get_temp_dir as get_temp_dir, gpu_device_name as gpu_device_name,
    is_built_with_cuda as is_built_with_cuda, is_gpu_available as is_gpu_available, main as main
)

