"""What TensorFlow's tutorials import, under the same path."""
