"""`tf.contrib.compiler.jit`: operations made inside a scope are compiled together."""

from xlalite.framework.graph.jit_scope import experimental_jit_scope as experimental_jit_scope, jit_scope as jit_scope
