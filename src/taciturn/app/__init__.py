"""The tool around the library: commands, reports, model files and verification."""
