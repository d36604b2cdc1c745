# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.layers.base import Layer as Layer
from xlalite.ops.layers.convolutional import (
    Conv1D as Conv1D, Conv2D as Conv2D, Conv2DTranspose as Conv2DTranspose, Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose, SeparableConv2D as SeparableConv2D, conv1d as conv1d, conv2d as conv2d,
    conv2d_transpose_layer as _conv2d_transpose_layer, conv3d as conv3d,
    conv3d_transpose_layer as _conv3d_transpose_layer, separable_conv2d_layer as _separable_conv2d_layer
)
from xlalite.ops.layers.core import (
    Dense as Dense, Dropout as Dropout, Flatten as Flatten, dense as dense, dropout as dropout, flatten as flatten
)
from xlalite.ops.layers.normalization import (
    BatchNormalization as BatchNormalization, batch_normalization as batch_normalization
)
from xlalite.ops.layers.pooling import (
    AveragePooling1D as AveragePooling1D, AveragePooling2D as AveragePooling2D, AveragePooling3D as AveragePooling3D,
    MaxPooling1D as MaxPooling1D, MaxPooling2D as MaxPooling2D, MaxPooling3D as MaxPooling3D,
    average_pooling1d as average_pooling1d, average_pooling2d as average_pooling2d,
    average_pooling3d as average_pooling3d, max_pooling1d as max_pooling1d, max_pooling2d as max_pooling2d,
    max_pooling3d as max_pooling3d
)

conv2d_transpose = _conv2d_transpose_layer
conv3d_transpose = _conv3d_transpose_layer
separable_conv2d = _separable_conv2d_layer
BatchNorm = BatchNormalization
