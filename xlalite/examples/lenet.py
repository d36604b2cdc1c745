"""LeNet, two convolutions and two dense layers, trained with Adam on handwritten digits; reaches 98 % of the package's.

python -m xlalite.examples.lenet
python -m xlalite.examples.lenet --xla=off --data_dir=DIR
"""

import xlalite as tf
from xlalite.examples.digit_training import CLASSES, run_program

KEEP_PROBABILITY = 0.5


def lenet(x: tf.Tensor, is_training: tf.Tensor) -> tf.Tensor:
    """The logits of images `[n, rows, columns, 1]`, after LeCun et al. 1998 with what was learnt since."""
    conv1 = tf.nn.relu(_convolution(x, 5, 32, "conv1"))
    pool1 = tf.nn.max_pool(conv1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    conv2 = tf.nn.relu(_convolution(pool1, 5, 64, "conv2"))
    pool2 = tf.nn.max_pool(conv2, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(pool2, [-1, pool2.shape[1:].num_elements()])
    hidden = tf.nn.relu(_dense(flat, 256, "hidden"))
    keep = tf.where(is_training, KEEP_PROBABILITY, 1.0)
    return _dense(tf.nn.dropout(hidden, keep), CLASSES, "logits")


def _convolution(x: tf.Tensor, size: int, features: int, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [size, size, x.shape.as_list()[3], features])
        bias = tf.get_variable("bias", [features], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME"), bias)


def _dense(x: tf.Tensor, units: int, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [x.shape.as_list()[1], units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)


if __name__ == "__main__":
    run_program("Trains LeNet on handwritten digits.", lenet, lambda: tf.train.AdamOptimizer(0.001), steps=1000)
