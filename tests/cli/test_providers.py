"""`halo providers`: the catalogue of tools and stores, for people and for programs."""

from __future__ import annotations

import json

import pytest

from halo_lang import catalog
from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]
NAMES = [spec.name for spec in catalog.providers()]


def test_every_provider_is_listed_with_what_it_needs(capsys: Captured) -> None:
    assert main(["providers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [spec.name for spec in catalog.providers()]  # other tests add some
    assert [line.split()[0] for line in lines[: len(names)]] == names
    assert "extra `documents`" in next(line for line in lines if line.startswith("Documents"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_every_setting_and_every_method(name: str, capsys: Captured) -> None:
    spec = catalog.provider(name)
    assert spec is not None
    assert main(["providers", name]) == 0
    page = capsys.readouterr().out
    assert spec.example in page
    for parameter in spec.config.parameters:
        assert f"\n  {parameter.name} " in page
    for method in spec.methods:
        assert f"\n  {method.name}{method.signature}\n" in page
        assert method.example in page


def test_what_a_method_does_to_the_world_is_said(capsys: Captured) -> None:
    main(["providers", "KV"])
    page = capsys.readouterr().out
    assert "get(key)\n      Read a value. Gives the value, null when there is none.\n      Reads only." in page
    assert "Changes something for good, may be repeated." in page


def test_a_name_in_other_letters_is_understood(capsys: Captured) -> None:
    assert main(["providers", "github"]) == 0
    assert capsys.readouterr().out.startswith("GitHub: ")


def test_an_unknown_name_is_refused_with_what_was_meant(capsys: Captured) -> None:
    assert main(["providers", "Vectorstor"]) == 2
    assert "there is no provider Vectorstor\n  = hint: did you mean VectorStore?" in capsys.readouterr().err


def test_programs_get_schemas(capsys: Captured) -> None:
    assert main(["providers", "--json"]) == 0
    documents = json.loads(capsys.readouterr().out)["providers"]
    assert [document["name"] for document in documents] == [spec.name for spec in catalog.providers()]
    store = next(document for document in documents if document["name"] == "KV")
    get = next(method for method in store["methods"] if method["name"] == "get")
    assert get["arguments"]["required"] == ["key"]
    assert (get["effect"], get["idempotent"], store["installed"]) == ("read", True, True)
    main(["providers", "KV", "--json"])
    assert json.loads(capsys.readouterr().out)["name"] == "KV"
