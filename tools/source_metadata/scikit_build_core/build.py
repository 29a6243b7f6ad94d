"""Answers pip's question for metadata from the PKG-INFO that every source distribution has."""
import email
import pathlib
import shutil


def prepare_metadata_for_build_wheel(folder, _settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        facts = email.message_from_file(file)
    info = pathlib.Path(folder) / f"{facts['Name'].replace('-', '_')}-{facts['Version']}.dist-info"
    info.mkdir()
    shutil.copyfile("PKG-INFO", info / "METADATA")
    return info.name
