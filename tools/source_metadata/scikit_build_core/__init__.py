"""Stands in for the build system of imgui-bundle's sources while tools/setup fetches them: nothing is built, and the real
one would come from the index without a pinned hash."""
