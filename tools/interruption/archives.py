"""Tiny archives in place of those that tools/setup fetches."""
import io
import tarfile
import zipfile


def wheel(name, version, files):
    """(file name, bytes) of a wheel with these files {path: bytes}."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    facts = {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
             f"{folder}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{folder}/RECORD": b"", f"{folder}/LICENSE": b"MIT"}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for path, content in (facts | files).items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl", written.getvalue()


def source(name, version, files):
    """(file name, bytes) of a source distribution whose build system would have to be fetched."""
    top = f"{name.replace('-', '_')}-{version}"
    project = ('[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
               f'[project]\nname = "{name}"\nversion = "{version}"\n')
    facts = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
             "pyproject.toml": project.encode()}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for path, content in (facts | files).items():
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{top}.tar.gz", written.getvalue()
