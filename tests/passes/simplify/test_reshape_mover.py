from xlalite.passes.simplify.reshape_mover import ReshapeMover


def program(*lines: str) -> str:
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def test_elementwise_work_happens_before_the_broadcast(transform) -> None:
    result = transform(
        ReshapeMover(),
        program(
            "x = f32[3] parameter(0)",
            "y = f32[3] parameter(1)",
            "c = f32[] constant(2)",
            "cs = f32[2,3] broadcast(c), dimensions={}",
            "a = f32[2,3] broadcast(x), dimensions={1}",
            "b = f32[2,3] broadcast(y), dimensions={1}",
            "p = f32[2,3] multiply(a, cs)",
            "ROOT r = f32[2,3] add(p, b)",
        ),
    )
    assert result.opcodes == ["constant", "broadcast", "multiply", "add", "broadcast"]
    assert result.module.entry_computation.root.operand(0).shape.dims == (3,)


def test_broadcasts_along_different_dimensions_stay(transform) -> None:
    text = program(
        "x = f32[3] parameter(0)",
        "a = f32[3,3] broadcast(x), dimensions={0}",
        "b = f32[3,3] broadcast(x), dimensions={1}",
        "ROOT r = f32[3,3] add(a, b)",
    )
    assert not transform(ReshapeMover(), text).changed


def test_reshapes_move_to_the_result(transform) -> None:
    result = transform(
        ReshapeMover(),
        program(
            "x = f32[2,3] parameter(0)",
            "y = f32[2,3] parameter(1)",
            "a = f32[6] reshape(x)",
            "b = f32[6] reshape(y)",
            "s = f32[6] add(a, b)",
            "ROOT r = f32[6] tanh(s)",
        ),
    )
    assert result.opcodes == ["add", "tanh", "reshape"]


def test_reshapes_of_different_sizes_stay(transform) -> None:
    text = program(
        "x = f32[2,3] parameter(0)",
        "y = f32[3,2] parameter(1)",
        "a = f32[6] reshape(x)",
        "b = f32[6] reshape(y)",
        "ROOT r = f32[6] add(a, b)",
    )
    assert not transform(ReshapeMover(), text).changed


def test_reshape_with_another_user_moves_only_if_it_just_adds_ones(transform) -> None:
    text = program(
        "x = f32[2,3] parameter(0)",
        "a = f32[SIZES] reshape(x)",
        "b = f32[SIZES] tanh(a)",
        "ROOT r = (f32[SIZES], f32[SIZES]) tuple(a, b)",
    )
    kept = transform(ReshapeMover(explain=True), text.replace("SIZES", "6"))
    assert not kept.changed
    assert {d.reason for d in kept.module.decisions} == {"the reshape has other uses"}
    assert transform(ReshapeMover(), text.replace("SIZES", "2,1,3")).changed


def test_reshape_to_a_scalar_stays(transform) -> None:
    text = program("x = f32[1] parameter(0)", "a = f32[] reshape(x)", "ROOT b = f32[] tanh(a)")
    assert not transform(ReshapeMover(), text).changed


def test_transpose_with_another_user_stays(transform) -> None:
    text = program(
        "x = f32[2,3] parameter(0)",
        "a = f32[3,2] transpose(x), dimensions={1,0}",
        "b = f32[3,2] tanh(a)",
        "ROOT r = (f32[3,2], f32[3,2]) tuple(a, b)",
    )
    result = transform(ReshapeMover(explain=True), text)
    assert not result.changed
    assert {d.reason for d in result.module.decisions} == {"the transpose has other uses"}


def test_transposes_move_to_the_result_and_broadcasts_follow(transform) -> None:
    result = transform(
        ReshapeMover(),
        program(
            "x = f32[2,3] parameter(0)",
            "y = f32[2] parameter(1)",
            "low = f32[] parameter(2)",
            "a = f32[3,2] transpose(x), dimensions={1,0}",
            "b = f32[3,2] broadcast(y), dimensions={1}",
            "s = f32[3,2] subtract(a, b)",
            "ROOT r = f32[3,2] clamp(low, s, low)",
        ),
    )
    assert result.opcodes == ["broadcast", "subtract", "clamp", "transpose"]


def test_transposes_of_different_orders_stay(transform) -> None:
    text = program(
        "x = f32[2,2,2] parameter(0)",
        "a = f32[2,2,2] transpose(x), dimensions={1,0,2}",
        "b = f32[2,2,2] transpose(x), dimensions={0,2,1}",
        "ROOT r = f32[2,2,2] add(a, b)",
    )
    assert not transform(ReshapeMover(), text).changed


def test_an_operation_keeps_what_is_asked_of_it_but_no_sharding_of_another_shape(transform) -> None:
    result = transform(
        ReshapeMover(),
        program(
            "x = f32[3] parameter(0)",
            "b = f32[2,3] broadcast(x), dimensions={1}",
            "ROOT r = f32[2,3] tanh(b), sharding={devices=[1,3]<=[3]}, result_accuracy={mode=highest}",
        ),
    )
    root = result.module.entry_computation.root
    assert (root.opcode, root.sharding, root.extra_attributes) == ("broadcast", "{devices=[1,3]<=[3]}", ())
    moved = root.operand(0)
    assert (moved.sharding, moved.extra_attributes) == ("", (("result_accuracy", "{mode=highest}"),))
