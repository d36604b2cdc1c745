"""What TensorBoard's projector shows of a model's embeddings, told by a file beside the events."""

import os
from pathlib import Path
from typing import Any

from xlalite.files.replacing import write_whole

FILE_NAME = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes a `ProjectorConfig` into the folder of a writer of summaries, or into the folder that is given.

    Raises:
        ValueError: The writer has no folder.
    """
    is_path = isinstance(summary_writer, str | os.PathLike)
    folder = os.fspath(summary_writer) if is_path else summary_writer.get_logdir()
    if not folder:
        raise ValueError("visualize_embeddings: expected a writer with a folder, found none")
    write_whole(Path(folder) / FILE_NAME, str(config).encode())
